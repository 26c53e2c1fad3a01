"""Graphs as networks: BERT's attention becomes one node, and what is no graph of ours is refused."""

import json

import numpy as np
import pytest

from counterpoint.encode.bert import Bert, BertSettings
from counterpoint.errors import ArtifactError
from counterpoint.onnx_encoder.integer_session import IntegerSession
from counterpoint.onnx_encoder.network import ATTENTION, GEMM, Network
from counterpoint.onnx_export.bert import states_of
from counterpoint.onnx_export.graph import Graph
from counterpoint.onnx_export.simplified import simplified

torch = pytest.importorskip("torch")
SETTINGS = BertSettings(50, 24, 2, 3, 40, 32)


def exported():
    torch.manual_seed(0)
    bert, graph = Bert(SETTINGS).eval(), Graph()
    states = states_of(graph, bert, graph.input("embedded", "t", 24), graph.input("bias", "t"))
    graph.output("states", states, 24)
    weights = {name: tensor.detach().numpy() for name, tensor in graph.weights.items()}
    return bert, simplified(graph.serialised()), weights


def test_each_attention_is_one_node():
    bert, network, weights = exported()
    operations = [node.operation for node in network.nodes]
    assert operations.count(ATTENTION) == 2 and operations.count(GEMM) == 6
    assert not {"Softmax", "Reshape", "Transpose", "MatMul", "Mul"} & set(operations)
    first = next(node for node in network.nodes if node.operation == ATTENTION)
    own = bert.encoder.layer[0].attention.self
    for place, part in enumerate((own.query, own.key, own.value)):
        for names, tensor in zip(first.attributes["layers"], (part.weight, part.bias), strict=True):
            np.testing.assert_array_equal(weights[names[place]], tensor.detach().numpy())
    assert first.attributes["heads"] == 3 and first.attributes["scale"] == np.float32(8**-0.5)
    assert network.inputs == ["embedded", "bias"] and network.outputs == ["states"]
    assert not network.constants  # attention knows its own


def test_hidden_states_are_nearly_bert_s():
    bert, network, weights = exported()
    embedded = np.random.default_rng(0).standard_normal((9, 24)).astype(np.float32)
    bias = np.zeros(9, np.float32)
    bias[7:] = np.finfo(np.float32).min
    found = IntegerSession(network, weights).run({"embedded": embedded, "bias": bias})["states"]
    states = bert.embeddings.LayerNorm(torch.from_numpy(embedded))[None]
    for layer in bert.encoder.layer:
        states = layer(states, torch.from_numpy(bias == 0)[None, None, None].expand(1, 1, 9, 9))
    wanted = states[0].detach().numpy()
    cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    assert cosines.min() > 0.999 and (found != wanted).any()


def test_a_network_is_the_same_after_json():
    _, network, weights = exported()
    again = Network.parse(json.loads(json.dumps(network.to_dict())))
    fed = {"embedded": np.ones((3, 24), np.float32), "bias": np.zeros(3, np.float32)}
    one, other = (IntegerSession(each, weights).run(fed)["states"] for each in (network, again))
    assert one.tobytes() == other.tobytes()


def test_other_graphs_are_refused():
    graph = Graph()
    graph.output("made", graph.add("Softmax", graph.add("Relu", graph.input("rows", "n", 4)), axis=-1), 4)
    with pytest.raises(ValueError, match="made by Relu, expected Add"):
        simplified(graph.serialised())
    graph = Graph()
    graph.output("made", graph.add("Cos", graph.input("rows", "n", 4)), 4)
    with pytest.raises(ArtifactError, match="unknown operations: Cos"):
        IntegerSession(simplified(graph.serialised()), {})
    _, network, weights = exported()
    name = next(iter(weights))
    del weights[name]
    with pytest.raises(ArtifactError, match=f"lacks '{name}'; build the index again"):
        IntegerSession(network, weights)

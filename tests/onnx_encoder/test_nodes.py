"""Nodes of graphs: BERT's attention becomes one node, and what is no graph of ours is refused."""

import numpy as np
import pytest

from counterpoint.encode.bert import Bert, BertSettings
from counterpoint.errors import ArtifactError
from counterpoint.onnx_encoder.integer_session import IntegerSession
from counterpoint.onnx_encoder.nodes import ATTENTION, GEMM, read_network
from counterpoint.onnx_export.bert import states_of
from counterpoint.onnx_export.graph import Graph

torch = pytest.importorskip("torch")
SETTINGS = BertSettings(50, 24, 2, 3, 40, 32)


def exported():
    torch.manual_seed(0)
    bert, graph = Bert(SETTINGS).eval(), Graph()
    states = states_of(graph, bert, graph.input("embedded", "t", 24), graph.input("bias", "t"))
    graph.output("states", states, 24)
    return bert, graph, {name: tensor.detach().numpy() for name, tensor in graph.weights.items()}


def test_each_attention_is_one_node():
    bert, graph, weights = exported()
    network = read_network(graph.serialised(), weights)
    operations = [node.operation for node in network.nodes]
    assert operations.count(ATTENTION) == 2 and operations.count(GEMM) == 6
    assert not {"Softmax", "Reshape", "Transpose", "MatMul", "Mul"} & set(operations)
    first = next(node for node in network.nodes if node.operation == ATTENTION)
    attention = bert.encoder.layer[0].attention.self
    parts = attention.query, attention.key, attention.value
    wanted = np.concatenate([each.weight.detach().numpy() for each in parts])
    np.testing.assert_array_equal(network.values[first.inputs[2]], wanted)
    assert first.attributes == {"heads": 3, "scale": np.float32(8**-0.5)}
    assert network.inputs == {"embedded", "bias"} and network.outputs == ("states",)
    kept = sum(value.size for value in network.values.values() if value.ndim == 2)
    assert kept == sum(value.size for value in weights.values() if value.ndim == 2)  # nothing is kept twice


def test_hidden_states_are_nearly_bert_s():
    bert, graph, weights = exported()
    embedded = np.random.default_rng(0).standard_normal((9, 24)).astype(np.float32)
    bias = np.zeros(9, np.float32)
    bias[7:] = np.finfo(np.float32).min
    found = IntegerSession(graph.serialised(), weights).run({"embedded": embedded, "bias": bias})["states"]
    states = bert.embeddings.LayerNorm(torch.from_numpy(embedded))[None]
    for layer in bert.encoder.layer:
        states = layer(states, torch.from_numpy(bias == 0)[None, None, None].expand(1, 1, 9, 9))
    wanted = states[0].detach().numpy()
    cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    assert cosines.min() > 0.999 and (found != wanted).any()


def test_other_graphs_are_refused():
    graph = Graph()
    graph.output("made", graph.add("Softmax", graph.input("rows", "n", 4), axis=-1), 4)
    with pytest.raises(ArtifactError, match="the graph of the queries is not one of ours"):
        IntegerSession(graph.serialised(), {})
    graph = Graph()
    graph.output("made", graph.add("Cos", graph.input("rows", "n", 4)), 4)
    with pytest.raises(ArtifactError, match="unknown operations: Cos"):
        IntegerSession(graph.serialised(), {})

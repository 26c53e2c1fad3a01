"""A model's query side as one graph, and the embeddings that are its inputs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from counterpoint.encode import Head, Transformer
from counterpoint.encode.bert import Bert
from counterpoint.encode.heads import Cls, Mean, WholeWords
from counterpoint.encode.layers import Layer, Linear, Stack, Unit
from counterpoint.encode.token_heads import PerToken
from counterpoint.model import Model
from counterpoint.onnx_encoder.description import Embeddings
from counterpoint.onnx_export.bert import linear, states_of
from counterpoint.onnx_export.graph import CannotExport, Graph
from counterpoint.transform import Normalise, Transform, Whitening

__all__ = ["network_of"]


def network_of(model: Model) -> tuple[Graph, dict[str, Embeddings]]:
    """Build the graph, and a dict from its input names to their embeddings.

    Raises:
        CannotExport: a part of the model has no graph.
    """
    graph, embeddings, encoder = Graph(), dict[str, Embeddings](), model.encoder.query
    states: dict[tuple[Transformer, bool], str] = {}
    for name, layout in model.sets.items():
        head, backbone = cast(Head, encoder.heads[name]), encoder.backbone_of(name)
        if (key := (backbone, head.static)) not in states:
            if head.static and model.encoder.document is not None:
                raise CannotExport(f"{name!r} is static, and documents have their own encoder")
            states[key] = _states(graph, backbone, head.static, embeddings)
        rows = _head_rows(graph, name, head, states[key])
        if name in model.encoder.shared:
            rows = _layer_rows(graph, cast(Layer, model.encoder.shared[name]), rows)
        for step in model.steps(name):
            rows = _step_rows(graph, step, rows)
        graph.output(name, rows, layout.dim)
    return graph, embeddings


def _states(graph: Graph, backbone: Transformer, static: bool, embeddings: dict[str, Embeddings]) -> str:
    source = f"embedded.{len(embeddings)}"
    words = graph.weight(backbone.embeddings.weight)
    if static:
        embeddings[source] = Embeddings(words)
        return graph.input(source, f"positions of {source}", backbone.embeddings.embedding_dim)
    bert = backbone.model_
    if not isinstance(bert, Bert):
        raise CannotExport(
            f"its backbone is a {type(bert).__name__}; only BERT's layers (model_type 'bert', GELU, absolute "
            "positions) have a graph"
        )
    positions = graph.weight(bert.embeddings.position_embeddings.weight)
    types = graph.weight(bert.embeddings.token_type_embeddings.weight)
    embeddings[source] = Embeddings(words, positions, types)
    embedded = graph.input(source, "positions", backbone.dim)
    return states_of(graph, bert, embedded, graph.input("query.bias", "positions"))


def _head_rows(graph: Graph, name: str, head: Head, states: str) -> str:
    """Add the rows of a set, from hidden states or word embeddings."""
    match head:
        case Cls():
            first = graph.add("Slice", states, *(graph.constant([at]) for at in (0, 1, 0)))
            return _finished(graph, head, first)
        case Mean() if head._steps():
            rows = states if head.projection is None else _layer_rows(graph, head.projection, states)
            for step in head._steps():
                rows = _step_rows(graph, step, rows)
            mean = graph.add("MatMul", graph.input("query.mean", 1, "positions"), rows)
            return _unit_rows(graph, mean) if head.normalise else mean
        case Mean():
            mean = graph.add("MatMul", graph.input("query.mean", 1, "positions"), states)
            return _finished(graph, head, mean)
        case WholeWords():
            words = graph.input(f"words.{name}", f"words of {name}", "positions")
            return _finished(graph, head, graph.add("MatMul", words, states))
        case PerToken():
            return _finished(graph, head, states)
        case _:
            why = (
                "whose rows depend on hidden states"
                if hasattr(head, "routers")
                else "which has no ONNX graph"
            )
            raise CannotExport(f"{name!r} has the head {type(head).__name__}, {why}")


def _finished(graph: Graph, head: Head, rows: str) -> str:
    if head.projection is not None:
        rows = _layer_rows(graph, head.projection, rows)
    return _unit_rows(graph, rows) if head.normalise else rows


def _unit_rows(graph: Graph, rows: str) -> str:
    """Scale rows to length 1; zero stays zero."""
    length = graph.add("ReduceL2", rows, graph.constant([-1]), keepdims=1)
    return graph.add("Div", rows, graph.add("Max", length, graph.constant(1e-12, np.float32)))


def _layer_rows(graph: Graph, layer: Layer, rows: str) -> str:
    match layer:
        case Linear():
            mapped = linear(graph, layer.linear_, rows)
            if layer.activation != "none":
                mapped = graph.add(layer.activation.capitalize(), mapped)
            if not layer.residual:
                return mapped
            added = rows if layer.in_dim == layer.dim else linear(graph, layer.residual_, rows)
            return graph.add("Add", mapped, added)
        case Unit():
            return _unit_rows(graph, rows)
        case Stack():
            for one in layer._layers():
                rows = _layer_rows(graph, one, rows)
            return rows
        case _:
            raise CannotExport(f"it has the layer {type(layer).__name__}, which has no ONNX graph")


def _step_rows(graph: Graph, step: Transform, rows: str) -> str:
    match step:
        case Normalise():
            return _unit_rows(graph, rows)
        case Whitening():
            return _whitened(graph, step, rows)
        case _:
            raise CannotExport(f"it has the transform {type(step).__name__}, which has no ONNX graph")


def _whitened(graph: Graph, step: Any, rows: str) -> str:
    """(x − μ)·M; a row of zeros stays zero."""
    centred = graph.add("Sub", rows, graph.weight(step.mean_))
    mapped = graph.add("MatMul", centred, graph.weight(step.matrix_))
    size = graph.add("ReduceL1", rows, graph.constant([-1]), keepdims=1)
    there = graph.add("Greater", size, graph.constant(0, np.float32))
    mapped = graph.add("Where", there, mapped, graph.constant(0, np.float32))
    return _unit_rows(graph, mapped) if step.normalise else mapped

"""Heads, layers and transforms as nodes of a graph: from hidden states to a vector set."""

from __future__ import annotations

from typing import Any

import numpy as np

from counterpoint.encode.heads import Cls, Head, Mean, WholeWords
from counterpoint.encode.layers import Layer, Linear, Stack, Unit
from counterpoint.encode.token_heads import PerToken
from counterpoint.exporting.bert import linear
from counterpoint.exporting.graph import CannotExport, Graph
from counterpoint.transform import Normalise, Transform, Whitening

__all__ = ["head_rows", "layer_rows", "step_rows"]


def head_rows(graph: Graph, name: str, head: Head, states: str) -> str:
    """Add the rows of a set, from hidden states or word embeddings.

    Raises:
        CannotExport: the type of the head is not supported.
    """
    match head:
        case Cls():
            first = graph.add("Slice", states, *(graph.constant([at]) for at in (0, 1, 0)))
            return _finished(graph, head, first)
        case Mean() if head._steps():
            rows = states if head.projection is None else layer_rows(graph, head.projection, states)
            for step in head._steps():
                rows = step_rows(graph, step, rows)
            mean = graph.add("MatMul", graph.input("query.mean", 1, "positions"), rows)
            return unit_rows(graph, mean) if head.normalise else mean
        case Mean():
            mean = graph.add("MatMul", graph.input("query.mean", 1, "positions"), states)
            return _finished(graph, head, mean)
        case WholeWords():
            words = graph.input(f"words.{name}", f"words of {name}", "positions")
            return _finished(graph, head, graph.add("MatMul", words, states))
        case PerToken():
            return _finished(graph, head, states)
        case _:
            raise CannotExport(
                f"{name!r} is a {type(head).__name__}, whose rows depend on hidden states"
                if hasattr(head, "routers")
                else f"{name!r} is a {type(head).__name__}, which has no graph"
            )


def _finished(graph: Graph, head: Head, rows: str) -> str:
    if head.projection is not None:
        rows = layer_rows(graph, head.projection, rows)
    return unit_rows(graph, rows) if head.normalise else rows


def unit_rows(graph: Graph, rows: str) -> str:
    """Scale rows to length 1; zero stays zero."""
    length = graph.add("ReduceL2", rows, graph.constant([-1]), keepdims=1)
    return graph.add("Div", rows, graph.add("Max", length, graph.constant(1e-12, np.float32)))


def layer_rows(graph: Graph, layer: Layer, rows: str) -> str:
    """Add a layer.

    Raises:
        CannotExport: the type of the layer is not supported.
    """
    match layer:
        case Linear():
            mapped = linear(graph, layer.linear_, rows)
            if layer.activation != "none":
                mapped = graph.add(layer.activation.capitalize(), mapped)
            if not layer.residual:
                return mapped
            return graph.add(
                "Add", mapped, rows if layer.in_dim == layer.dim else linear(graph, layer.residual_, rows)
            )
        case Unit():
            return unit_rows(graph, rows)
        case Stack():
            for one in layer._layers():
                rows = layer_rows(graph, one, rows)
            return rows
        case _:
            raise CannotExport(f"it has a {type(layer).__name__}, which has no graph")


def step_rows(graph: Graph, step: Transform, rows: str) -> str:
    """Add a transform.

    Raises:
        CannotExport: the type of the transform is not supported.
    """
    match step:
        case Normalise():
            return unit_rows(graph, rows)
        case Whitening():
            return _whitened(graph, step, rows)
        case _:
            raise CannotExport(f"it has a {type(step).__name__}, which has no graph")


def _whitened(graph: Graph, step: Any, rows: str) -> str:
    """(x − μ)·M; a row of zeros stays zero."""
    centred = graph.add("Sub", rows, graph.weight(step.mean_))
    mapped = graph.add("MatMul", centred, graph.weight(step.matrix_))
    size = graph.add("ReduceL1", rows, graph.constant([-1]), keepdims=1)
    there = graph.add("Greater", size, graph.constant(0, np.float32))
    mapped = graph.add("Where", there, mapped, graph.constant(0, np.float32))
    return unit_rows(graph, mapped) if step.normalise else mapped

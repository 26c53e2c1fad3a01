"""BERT's layers as a graph, computed exactly as in `counterpoint.encode.bert`, for one text without batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from counterpoint.encode.bert import Bert
from counterpoint.onnx_export.graph import Graph

__all__ = ["linear", "states_of"]


def states_of(graph: Graph, bert: Bert, embedded: str, bias: str) -> str:
    """Add nodes for the hidden states of the last layer, (positions, components).

    `embedded` names the sum of a token's embeddings, and `bias` the attention bias of each position.
    """
    states = _norm(graph, bert.embeddings.LayerNorm, embedded)
    layers: list[Any] = list(bert.encoder.layer)
    for layer in layers:
        attended = _attended(graph, layer.attention.self, states, bias)
        states = _added(graph, layer.attention.output, attended, states)
        inner = graph.add("Gelu", linear(graph, layer.intermediate["dense"], states))
        states = _added(graph, layer.output, inner, states)
    return states


def linear(graph: Graph, layer: nn.Linear, rows: str) -> str:
    """Add a linear layer: x W^T + b."""
    bias = () if layer.bias is None else (graph.weight(layer.bias),)
    return graph.add("Gemm", rows, graph.weight(layer.weight), *bias, transB=1)


def _norm(graph: Graph, norm: nn.LayerNorm, rows: str) -> str:
    weights = graph.weight(norm.weight), graph.weight(norm.bias)
    return graph.add("LayerNormalization", rows, *weights, epsilon=norm.eps, axis=-1)


def _added(graph: Graph, output: Any, rows: str, before: str) -> str:
    return _norm(graph, output.LayerNorm, graph.add("Add", linear(graph, output.dense, rows), before))


def _attended(graph: Graph, attention: Any, states: str, bias: str) -> str:
    size = attention.head_size
    heads = attention.query.out_features // size
    apart = graph.constant([-1, heads, size])  # -1: number of positions, which may be 0

    def of_heads(layer: nn.Linear, order: list[int]) -> str:
        return graph.add("Transpose", graph.add("Reshape", linear(graph, layer, states), apart), perm=order)

    query, value = of_heads(attention.query, [1, 0, 2]), of_heads(attention.value, [1, 0, 2])
    scores = graph.add("MatMul", query, of_heads(attention.key, [1, 2, 0]))
    scores = graph.add("Mul", scores, graph.constant(size**-0.5, np.float32))
    shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    made = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[1, 0, 2])
    return graph.add("Reshape", made, graph.constant([-1, heads * size]))

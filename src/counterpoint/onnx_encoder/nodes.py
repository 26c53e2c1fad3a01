"""Nodes of a graph that `counterpoint.onnx_export` wrote, with BERT's attention as one node.

Attention is thirteen nodes of ONNX, most of which only move numbers. Here its three matrices are one, and the
rest is one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

__all__ = ["ATTENTION", "GEMM", "Network", "Node", "read_network"]

GEMM, ATTENTION = "Gemm", "Attention"
ROWS_OF_HEADS = "Transpose", "Reshape", GEMM  # from the last node to the first

Values = Mapping[str, np.ndarray]


@final
class Node(NamedTuple):
    """A node: names of its operation, inputs and output, and its attributes."""

    operation: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, Any]


@final
class Network(NamedTuple):
    """A graph's nodes in order, its constants and weights by name, and names of its inputs and outputs."""

    nodes: Sequence[Node]
    values: Values
    inputs: frozenset[str]
    outputs: Sequence[str]


def read_network(graph: bytes, weights: Values) -> Network:
    """Read a graph in ONNX, whose weights are given by name."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    found = ModelProto.FromString(graph).graph
    nodes = [
        Node(
            node.op_type,
            tuple(node.input),
            node.output[0],
            {one.name: helper.get_attribute_value(one) for one in node.attribute},
        )
        for node in found.node
    ]
    inside = [each for each in found.initializer if each.data_location != TensorProto.EXTERNAL]
    values = {**weights, **{each.name: numpy_helper.to_array(each) for each in inside}}
    inputs, outputs = (tuple(each.name for each in side) for side in (found.input, found.output))
    return Network(*_with_attention(nodes, values), frozenset(inputs), outputs)


def _with_attention(nodes: Sequence[Node], values: Values) -> tuple[list[Node], Values]:
    """Replace the nodes of each attention by one, with a matrix for queries, keys and values together."""
    made: dict[str, Node] = {}
    replaced: set[str] = set()
    joined = dict(values)
    for softmax in (node for node in nodes if node.operation == "Softmax"):
        parts = _Attention(nodes, softmax)
        states, _, *bias = parts.layers[0].inputs
        names = tuple(f"{softmax.output}.{name}" for name in ("matrix", "bias"))
        joined[names[0]] = np.concatenate([values[each.inputs[1]] for each in parts.layers])
        if bias:
            joined[names[1]] = np.concatenate([values[each.inputs[2]] for each in parts.layers])
        said = {"heads": int(values[parts.shape][1]), "scale": np.float32(values[parts.scale])}
        inputs = states, parts.bias, *names[: 1 + len(bias)]
        made[parts.output] = Node(ATTENTION, inputs, parts.output, said)
        replaced |= parts.outputs
        for layer in parts.layers:
            for name in layer.inputs[1:]:
                joined.pop(name, None)
    kept = [made.get(node.output, node) for node in nodes if node.output not in replaced - made.keys()]
    return kept, joined


class _Attention:
    """The nodes of an attention around its softmax.

    Attributes:
        layers: of queries, keys and values.
        bias: name of the bias of each position.
        shape: name of the shape of rows by head.
        scale: name of the factor of the products.
        output: name of the result.
        outputs: names of all that these nodes compute.
    """

    def __init__(self, nodes: Sequence[Node], softmax: Node):
        self._nodes = {node.output: node for node in nodes}
        add, scaled, product = self._back(softmax.inputs[0], ("Add", "Mul", "MatMul"))
        mixed, turned, whole = self._forward(nodes, softmax, ("MatMul", "Transpose", "Reshape"))
        sides = [self._back(name, ROWS_OF_HEADS) for name in (*product.inputs, mixed.inputs[1])]
        self.layers = [side[-1] for side in sides]
        self.bias, self.scale, self.shape = add.inputs[1], scaled.inputs[1], sides[0][1].inputs[1]
        self.output = whole.output
        both = add, scaled, product, softmax, mixed, turned, whole
        self.outputs = {node.output for node in (*both, *(each for side in sides for each in side))}

    def _back(self, name: str, operations: Sequence[str]) -> list[Node]:
        """The nodes that lead to a value by their first inputs, the last one first."""
        found: list[Node] = []
        for operation in operations:
            found.append(_checked(self._nodes[name], operation))
            name = found[-1].inputs[0]
        return found

    @staticmethod
    def _forward(nodes: Sequence[Node], node: Node, operations: Sequence[str]) -> Iterator[Node]:
        """The nodes that a value goes through."""
        for operation in operations:
            node = _checked(next(each for each in nodes if node.output in each.inputs), operation)
            yield node


def _checked(node: Node, operation: str) -> Node:
    if node.operation != operation:
        raise ValueError(f"{node.output} is made by {node.operation}, expected {operation}")
    return node

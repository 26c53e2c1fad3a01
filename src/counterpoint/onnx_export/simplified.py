"""A graph in ONNX as a `Network`, with each attention as one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from counterpoint.onnx_encoder.network import ATTENTION, GEMM, Network, Node

__all__ = ["simplified"]

ROWS_OF_HEADS = "Transpose", "Reshape", GEMM  # from the last node to the first


def simplified(graph: bytes) -> Network:
    """Read a graph that `counterpoint.onnx_export.graph` serialised.

    Raises:
        ValueError: a softmax is not that of BERT's attention.
    """
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    found = ModelProto.FromString(graph).graph
    nodes = [
        Node(
            node.op_type,
            list(node.input),
            node.output[0],
            {one.name: helper.get_attribute_value(one) for one in node.attribute},
        )
        for node in found.node
    ]
    inside = [each for each in found.initializer if each.data_location != TensorProto.EXTERNAL]
    constants = {each.name: numpy_helper.to_array(each) for each in inside}
    for softmax in [node for node in nodes if node.operation == "Softmax"]:
        nodes = _with_attention(nodes, softmax, constants)
    used = {name for node in nodes for name in node.inputs}
    constants = {name: value for name, value in constants.items() if name in used}
    inputs, outputs = ([each.name for each in side] for side in (found.input, found.output))
    return Network(nodes, constants, inputs, outputs)


def _with_attention(nodes: Sequence[Node], softmax: Node, constants: dict) -> list[Node]:
    """Replace the nodes around a softmax by one."""
    by_output = {node.output: node for node in nodes}
    add, scaled, product = _back(by_output, softmax.inputs[0], ("Add", "Mul", "MatMul"))
    mixed, turned, whole = _forward(nodes, softmax, ("MatMul", "Transpose", "Reshape"))
    sides = [_back(by_output, name, ROWS_OF_HEADS) for name in (*product.inputs, mixed.inputs[1])]
    layers = [side[-1] for side in sides]
    said = {
        "heads": int(constants[sides[0][1].inputs[1]][1]),
        "scale": float(constants[scaled.inputs[1]]),
        "layers": [list(names) for names in zip(*(layer.inputs[1:] for layer in layers), strict=True)],
    }
    made = Node(ATTENTION, [layers[0].inputs[0], add.inputs[1]], whole.output, said)
    replaced = {node.output for node in (add, scaled, product, softmax, mixed, turned)}
    replaced |= {node.output for side in sides for node in side}
    return [made if node is whole else node for node in nodes if node.output not in replaced]


def _back(by_output: dict[str, Node], name: str, operations: Sequence[str]) -> list[Node]:
    """The nodes that lead to a value by their first inputs, the last one first."""
    found: list[Node] = []
    for operation in operations:
        found.append(_checked(by_output[name], operation))
        name = found[-1].inputs[0]
    return found


def _forward(nodes: Sequence[Node], node: Node, operations: Sequence[str]) -> Iterator[Node]:
    """The nodes that a value goes through."""
    for operation in operations:
        node = _checked(next(each for each in nodes if node.output in each.inputs), operation)
        yield node


def _checked(node: Node, operation: str) -> Node:
    if node.operation != operation:
        raise ValueError(f"{node.output} is made by {node.operation}, expected {operation}")
    return node

"""The graph of the queries with matrices of 8-bit integers, for half the time per query.

A matrix is rounded in blocks of 128 weights, each with its own scale. ONNX Runtime rounds what is multiplied
with it in the same blocks, row by row, so that one large component makes only its own block coarser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

__all__ = ["in_8_bits", "rounded"]

BLOCK = 128
LEAST = 16  # the smallest block that ONNX Runtime has
TOP = 127
ZERO = 128  # integers are stored without a sign
INTEGERS = 4  # ONNX Runtime's name for products of 8-bit integers
DOMAIN = "com.microsoft"


def in_8_bits(
    graph: bytes, weights: Mapping[str, Float[np.ndarray, ...]]
) -> tuple[bytes, dict[str, Float[np.ndarray, ...]]]:
    """Round the matrices of a graph that `counterpoint.onnx_export` wrote.

    Args:
        graph: in ONNX, with names of float32 weights.
        weights: by name.

    Returns:
        The graph, which contains the rounded matrices, and the weights that it still names.
    """
    from onnx import ModelProto, helper, numpy_helper

    model = ModelProto.FromString(graph)
    nodes = [node for node in model.graph.node if node.op_type == "Gemm" and node.input[1] in weights]
    matrices = {node.input[1] for node in nodes}
    named = [each for each in model.graph.initializer if each.name not in matrices]
    for name in sorted(matrices):
        integers, scales = rounded(weights[name])
        named += [numpy_helper.from_array(integers, name), numpy_helper.from_array(scales, f"{name}.scales")]
    for node in nodes:
        outputs, inputs = weights[node.input[1]].shape
        said: dict[str, Any] = {"K": inputs, "N": outputs, "bits": 8, "block_size": _block(inputs)}
        made = helper.make_node(
            "MatMulNBits",
            [*node.input[:2], f"{node.input[1]}.scales", "", "", *node.input[2:]],
            list(node.output),
            domain=DOMAIN,
            accuracy_level=INTEGERS,
            **said,
        )
        node.CopyFrom(made)
    del model.graph.initializer[:]
    model.graph.initializer.extend(named)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    rest = {name: weight for name, weight in weights.items() if name not in matrices}
    return model.SerializeToString(), rest


def rounded(
    matrix: Float[np.ndarray, "o i"],
) -> tuple[UInt8[np.ndarray, "o b k"], Float[np.ndarray, "o b"]]:
    """Integers from 1 to 255 around 128, and the scale of each block of `k`; the last block is filled up."""
    outputs, inputs = matrix.shape
    block = _block(inputs)
    filled = np.zeros((outputs, -(-inputs // block) * block), np.float32)
    filled[:, :inputs] = matrix
    blocks = filled.reshape(outputs, -1, block)
    scales = np.abs(blocks).max(2) / np.float32(TOP)
    whole = np.rint(blocks / np.where(scales > 0, scales, np.float32(1))[:, :, None])
    return (whole + ZERO).astype(np.uint8), scales


def _block(inputs: int) -> int:
    """The size of the blocks: a power of two, no larger than needed for a small matrix."""
    return min(BLOCK, max(LEAST, 1 << (inputs - 1).bit_length()))

"""`Network`: the nodes of a query encoder as plain data, for which no ONNX package is needed.

`counterpoint.onnx_export` writes it next to the graph. BERT's attention, thirteen nodes of ONNX that mostly
move numbers, is one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

__all__ = ["ATTENTION", "GEMM", "Network", "Node"]

GEMM, ATTENTION = "Gemm", "Attention"
KINDS = {"int64": np.int64, "float32": np.float32}


@final
class Node(NamedTuple):
    """A node.

    Attributes:
        operation: by ONNX's name; or `ATTENTION`.
        inputs: names of its inputs. The matrix of `GEMM` is a weight's name, and so is its bias, if any.
        output: name of its output.
        attributes: of the operation. `ATTENTION` has `heads`, `scale`, and `layers`: names of the matrices of
            queries, keys and values, and names of their biases, if any.
    """

    operation: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, Any]


@final
@dataclass(frozen=True)
class Network:
    """The nodes in order, small constants by name, and names of inputs and outputs."""

    nodes: Sequence[Node]
    constants: Mapping[str, np.ndarray]
    inputs: Sequence[str]
    outputs: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """What `parse` reads, for JSON."""
        constants = {name: [str(value.dtype), value.tolist()] for name, value in self.constants.items()}
        nodes = [list(node) for node in self.nodes]
        return {"nodes": nodes, "constants": constants, "inputs": self.inputs, "outputs": self.outputs}

    @staticmethod
    def parse(said: Mapping[str, Any]) -> Network:
        """Read what `to_dict` made.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
        """
        constants = {name: np.array(value, KINDS[kind]) for name, (kind, value) in said["constants"].items()}
        nodes = [Node(*each) for each in said["nodes"]]
        return Network(nodes, constants, tuple(said["inputs"]), tuple(said["outputs"]))

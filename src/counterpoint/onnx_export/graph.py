"""`Graph`: writes ONNX nodes one by one; weights are referred to by name and not copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from torch import Tensor

__all__ = ["CannotExport", "Graph"]

OPSET = 20
IR = 10


class CannotExport(Exception):
    """Why a model's queries cannot be exported as a graph. It is reported, and torch encodes the queries."""


@final
class Graph:
    """A graph under construction. Names of values have a dot, except names of outputs.

    Attributes:
        weights: tensors by their names in the graph.
    """

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self._names: dict[int, str] = {}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: dict[str, Sequence[str | int]] = {}
        self._outputs: dict[str, int] = {}

    def add(self, operation: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        from onnx import helper

        made = output or f"{operation.lower()}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, list(inputs), [made], **attributes))
        return made

    def weight(self, tensor: Tensor) -> str:
        """Return the name of a weight, the same for the same tensor.

        Raises:
            CannotExport: it is not float32.
        """
        if str(tensor.dtype) != "torch.float32":
            raise CannotExport(f"it has weights of type {str(tensor.dtype).removeprefix('torch.')}")
        name = self._names.setdefault(id(tensor), f"weight.{len(self._names)}")
        self.weights[name] = tensor
        return name

    def constant(self, values: Any, kind: type = np.int64) -> str:
        """Add a small constant, stored in the graph."""
        from onnx import numpy_helper

        name = f"constant.{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def input(self, name: str, *shape: str | int) -> str:
        """Add a float32 input that depends on the query."""
        self._inputs[name] = shape
        return name

    def output(self, name: str, value: str, dim: int) -> None:
        """Name a value as an output."""
        self.add("Identity", value, output=name)
        self._outputs[name] = dim

    def serialised(self, embedded: Sequence[str] = ()) -> bytes:
        """Serialise the graph for ONNX; `embedded` weights are only looked up outside of it."""
        from onnx import TensorProto, helper

        def info(name: str, shape: Sequence[str | int]) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

        named = [_external(name, weight) for name, weight in self.weights.items() if name not in embedded]
        inputs = [info(name, shape) for name, shape in self._inputs.items()]
        outputs = [info(name, [f"rows of {name}", dim]) for name, dim in self._outputs.items()]
        graph = helper.make_graph(self._nodes, "queries", inputs, outputs, [*named, *self._constants])
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR, producer_name="counterpoint")
        return model.SerializeToString()


def _external(name: str, weight: Tensor) -> Any:
    """A weight whose numbers are not in the graph; the caller of the graph provides them."""
    from onnx import TensorProto

    made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=weight.shape)
    made.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights"), ("offset", "0"), ("length", str(4 * weight.numel()))):
        made.external_data.add(key=key, value=value)
    return made

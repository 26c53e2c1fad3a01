"""Run a graph with its weights in ONNX Runtime, on one thread."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, final

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ArtifactError

__all__ = ["Session", "check_runtime"]


def check_runtime() -> None:
    """Check that ONNX Runtime is installed, without importing it.

    Raises:
        ArtifactError: it is not installed.
    """
    if find_spec("onnxruntime") is None:
        raise ArtifactError(
            "encoding queries without torch needs the package 'onnxruntime', which is not installed. Install "
            f"it with: {shlex.quote(sys.executable)} -m pip install onnxruntime"
        )


@final
class Session:
    """Computes a graph.

    It uses one thread, because a query has only some twenty positions. Several threads may call it at once.

    Args:
        graph: in ONNX, with the names of its weights but not their values.
        weights: by name; not copied before they are packed.

    Raises:
        ArtifactError: ONNX Runtime is not installed, or cannot compute the graph.
    """

    def __init__(self, graph: bytes, weights: Mapping[str, Float[np.ndarray, ...]]):
        check_runtime()
        import onnxruntime as runtime

        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The graph is written in its final form; optimising it takes longer than it saves.
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        values = [runtime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
        options.add_external_initializers(list(weights), values)
        self._weights = weights  # keeps the memory of the values
        try:
            made = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # errors of many types, none of them ONNX Runtime's own
            raise ArtifactError(f"ONNX Runtime cannot load the graph of the queries: {error}") from error
        self._session: Any = made
        self.inputs = frozenset(one.name for one in self._session.get_inputs())
        self.outputs = tuple(one.name for one in self._session.get_outputs())

    def run(self, fed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs, by name.

        Raises:
            ArtifactError: ONNX Runtime fails.
        """
        try:
            made = self._session.run(None, dict(fed))
        except Exception as error:  # as above
            raise ArtifactError(f"ONNX Runtime cannot compute the graph of the queries: {error}") from error
        return dict(zip(self.outputs, made, strict=True))

"""Encode queries without torch, from an export that `counterpoint.onnx_export` wrote next to an index.

An export says how texts are tokenised and which rows a vector set has. Kernels of our own compute its graph
in 8 bits, or ONNX Runtime in float32. The weights are in the model's own files, mapped into memory.
"""

from counterpoint.onnx_encoder.description import Description
from counterpoint.onnx_encoder.model import ExportedModel, open_export

__all__ = ["Description", "ExportedModel", "open_export"]

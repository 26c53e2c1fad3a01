"""Encoding queries without torch: what `counterpoint.exporting` wrote next to an index, read again.

An export says how texts are tokenised and which rows a vector set has of them; its graph, which ONNX Runtime
computes, makes vectors of these. The weights are the model's own files, mapped into memory.
"""

from counterpoint.exported.description import Description
from counterpoint.exported.model import ExportedModel, open_export

__all__ = ["Description", "ExportedModel", "open_export"]

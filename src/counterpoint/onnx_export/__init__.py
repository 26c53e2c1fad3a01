"""Export a model's query side as a graph for ONNX Runtime; `counterpoint.onnx_encoder` reads it."""

from counterpoint.onnx_export.write import export_queries

__all__ = ["export_queries"]

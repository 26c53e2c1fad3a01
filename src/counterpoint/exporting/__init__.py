"""Writing a model's query side as a graph for ONNX Runtime, for `counterpoint.exported` to read without torch."""

from counterpoint.exporting.write import export_queries

__all__ = ["export_queries"]

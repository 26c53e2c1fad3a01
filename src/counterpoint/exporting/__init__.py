"""Export a model's query side as a graph for ONNX Runtime; `counterpoint.exported` reads it."""

from counterpoint.exporting.write import export_queries

__all__ = ["export_queries"]

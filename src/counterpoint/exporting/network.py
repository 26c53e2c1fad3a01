"""A model's query side as one graph, and the embeddings that are its inputs."""

from __future__ import annotations

from typing import cast

from counterpoint.encode import Head, Transformer
from counterpoint.encode.bert import Bert
from counterpoint.encode.layers import Layer
from counterpoint.exported.description import Embeddings
from counterpoint.exporting.bert import states_of
from counterpoint.exporting.graph import CannotExport, Graph
from counterpoint.exporting.rows import head_rows, layer_rows, step_rows
from counterpoint.model import Model

__all__ = ["network_of"]


def network_of(model: Model) -> tuple[Graph, dict[str, Embeddings]]:
    """Build the graph, and a dict from its input names to their embeddings.

    Raises:
        CannotExport: a part of the model has no graph.
    """
    graph, embeddings, encoder = Graph(), dict[str, Embeddings](), model.encoder.query
    states: dict[tuple[Transformer, bool], str] = {}
    for name, layout in model.sets.items():
        head, backbone = cast(Head, encoder.heads[name]), encoder.backbone_of(name)
        if (key := (backbone, head.static)) not in states:
            if head.static and model.encoder.document is not None:
                raise CannotExport(f"{name!r} is static, and documents have their own encoder")
            states[key] = _states(graph, backbone, head.static, embeddings)
        rows = head_rows(graph, name, head, states[key])
        if name in model.encoder.shared:
            rows = layer_rows(graph, cast(Layer, model.encoder.shared[name]), rows)
        for step in model.steps(name):
            rows = step_rows(graph, step, rows)
        graph.output(name, rows, layout.dim)
    return graph, embeddings


def _states(graph: Graph, backbone: Transformer, static: bool, embeddings: dict[str, Embeddings]) -> str:
    source = f"embedded.{len(embeddings)}"
    words = graph.weight(backbone.embeddings.weight)
    if static:
        embeddings[source] = Embeddings(words)
        return graph.input(source, f"positions of {source}", backbone.embeddings.embedding_dim)
    bert = backbone.model_
    if not isinstance(bert, Bert):
        raise CannotExport(
            f"its backbone is a {type(bert).__name__}; only BERT's layers (model_type 'bert', GELU, absolute "
            "positions) have a graph"
        )
    table = bert.embeddings
    embeddings[source] = Embeddings(
        words,
        graph.weight(table.position_embeddings.weight),
        graph.weight(table.token_type_embeddings.weight),
    )
    embedded = graph.input(source, "positions", backbone.dim)
    return states_of(graph, bert, embedded, graph.input("query.bias", "positions"))

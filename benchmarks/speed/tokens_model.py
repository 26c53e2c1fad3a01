"""The model of token vectors: MiniLM's last layer, as it is. Their components are cut to 128 by a PCA."""

from counterpoint.encode import DualEncoder, Encoder, TextInput, TokenVectors, Transformer
from counterpoint.model import Model

LONGEST = {"query": 32, "document": 180}  # word-pieces


def tokens_model() -> Model:
    """A vector of unit length a token, 384 components."""
    query, document = (TextInput(max_length=LONGEST[side]) for side in ("query", "document"))
    heads = {"tokens": TokenVectors(normalise=True)}
    return Model(DualEncoder(Encoder(Transformer("minilm"), heads, query=query, document=document)))

"""`counterpoint diagnose --tokens`: count the vectors that a collection would get, by kind of token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from counterpoint.cli.progress import reading
from counterpoint.cli.tables import text_table

if TYPE_CHECKING:
    from counterpoint.encode import Stem

__all__ = ["count_collection", "counts_text"]


def count_collection(source: str, model: str, stem: Stem) -> dict[str, Any]:
    """Count the tokens of a collection's documents with a model's tokenizer."""
    from counterpoint.data import open_collection
    from counterpoint.encode.sources import locate
    from counterpoint.encode.tokenizer import Tokenizer
    from counterpoint.measure.token_counts import count_tokens

    tokenizer = Tokenizer.from_pretrained(locate(model))
    collection = open_collection(source, passage_words=None)
    with reading(collection, "counting") as documents:
        texts = (document.full_text for document in documents)
        counts = count_tokens(texts, lambda batch: [found.ids for found in tokenizer.encode(batch)], stem)
    return {"collection": source, "tokenizer": model, "stem": stem, "tokens": counts.to_dict()}


def counts_text(result: dict[str, Any]) -> str:
    """A table with the columns of ColBERTer's table 1."""
    found = result["tokens"]
    header = [
        "documents",
        "word-pieces",
        "unique",
        "words",
        "unique",
        f"unique, {result['stem']}",
        "retained",
    ]
    means = [
        f"{found[name]:.1f}" for name in ("pieces", "unique_pieces", "words", "unique_words", "unique_stems")
    ]
    table = text_table(header, [[f"{found['texts']:,}", *means, f"{found['retained']:.1%}"]])
    return f"{table}\nMeans per document; retained: distinct stems as a share of word-pieces."

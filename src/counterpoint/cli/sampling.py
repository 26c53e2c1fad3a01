"""A sample of a collection, encoded: what commands that look at vectors begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from counterpoint.cli.console import progress
from counterpoint.cli.judgements import judgements_of

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.types import Document, Ragged

__all__ = ["Sample", "encode_texts", "sample_of"]


@dataclass(frozen=True)
class Sample:
    """Texts of a collection; all were drawn at random with the same chance.

    Attributes:
        queries: no two of the same words.
        documents: some of all documents.
        other: for each of `documents`, whether it is relevant to none of the queries.
        relevant: some of the documents that are relevant to one.
        split: whose queries these are; None for a collection without judgements.
    """

    queries: Sequence[str]
    documents: Sequence[str]
    other: Sequence[bool]
    relevant: Sequence[str]
    split: str | None


def sample_of(source: str, split: str | None, size: int, seed: int) -> Sample:
    """At most `size` texts of each kind; the documents are read once, and only the sample is kept.

    Raises:
        ConfigError: several splits and none is chosen.
        DataError: the collection cannot be read, or has fewer than two queries or documents.
    """
    import numpy as np

    from counterpoint.data import open_collection
    from counterpoint.errors import DataError
    from counterpoint.measure.alignment import distinct_texts

    rng = np.random.default_rng(seed)
    collection = open_collection(source)
    judged = judgements_of(source, split, bare=False) if split or collection.splits else None
    found = collection.queries(None if judged is None else judged.split)
    texts = _some(distinct_texts(found.values()), size, rng)
    chosen = set(texts)
    relevant = {
        document
        for query, grades in ({} if judged is None else judged.qrels).items()
        if found[query] in chosen
        for document, grade in grades.items()
        if grade > 0
    }
    wanted = set(_some(sorted(relevant), size, rng))
    kept: list[Document] = []
    answers: list[str] = []
    with progress("reading", "documents", collection.size) as update:
        for read, document in enumerate(collection.documents()):
            if document.id in wanted:
                answers.append(document.full_text)
            # Algorithm R: every document so far is in the sample with the same chance.
            place = read if read < size else int(rng.integers(read + 1))
            if place < size:
                kept[place : place + 1] = [document]
            update(read + 1)
    if len(texts) < 2 or len(kept) < 2:
        raise DataError(
            f"{source}: {len(texts)} different queries and {len(kept)} documents; needs two of each"
        )
    return Sample(
        queries=texts,
        documents=[document.full_text for document in kept],
        other=[document.id not in relevant for document in kept],
        relevant=answers,
        split=None if judged is None else judged.split,
    )


def encode_texts(
    sides: Mapping[str, tuple[Callable[..., dict[str, Ragged]], Sequence[str]]],
) -> dict[str, dict[str, Ragged]]:
    """Vector sets by what was encoded, each given as a method of the model and texts."""
    from counterpoint.encode import EncodeOptions

    made: dict[str, dict[str, Ragged]] = {}
    with progress("encoding", "texts", sum(len(texts) for _, texts in sides.values())) as update:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            update(done)

        for name, (encode, texts) in sides.items():
            made[name] = encode(texts, EncodeOptions(progress=more))
    return made


def _some(texts: Sequence[str], size: int, rng: np.random.Generator) -> list[str]:
    """At most `size` of the texts, in their order."""
    import numpy as np

    if len(texts) <= size:
        return list(texts)
    return [texts[int(at)] for at in np.sort(rng.choice(len(texts), size, replace=False))]

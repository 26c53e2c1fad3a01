"""The data of a run: training examples, and development queries that no training example is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.data import Collection, open_collection
from counterpoint.errors import ConfigError, DataError
from counterpoint.files import sha256_file
from counterpoint.learn import DevelopmentSet, TrainingSet, open_training_data
from counterpoint.learn.seeds import seed_of
from counterpoint.recipe.recipe import Recipe

__all__ = ["RecipeData", "read_recipe_data"]


@dataclass(frozen=True)
class RecipeData:
    """The training and development data of a run.

    Attributes:
        training: contains no example about a development query.
        development: uses the same documents. None if there are no development queries.
        origin: where the development queries come from, in words.
        files: files of the development queries with their SHA-256.
        left_out: number of training examples dropped because they are about development queries.
    """

    training: TrainingSet
    development: DevelopmentSet | None = None
    origin: str = "none"
    files: Sequence[Mapping[str, str]] = ()
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Identity of these data, as JSON: sizes, files with their SHA-256, fingerprints."""
        return {
            "training": {
                "fingerprint": self.training.fingerprint,
                "examples": len(self.training),
                "queries": len(self.training.queries),
                "documents": len(self.training.documents),
                "provenance": dict(self.training.provenance),
            },
            "development": {
                "origin": self.origin,
                "files": [dict(file) for file in self.files],
                **(_described(self.development) if self.development else {}),
            },
        }


def read_recipe_data(
    recipe: Recipe, source: str | Path, *, documents: str | Path | None = None
) -> RecipeData:
    """Read training data and development queries as the recipe says.

    The development queries are the split `data.development` if the collection has it. Training examples about
    the same queries, by id or text, are dropped. Otherwise `data.held_out` training queries are held out,
    drawn with the recipe's seed.

    Args:
        recipe: its `data` and `seed` are used.
        source: a collection, or training data in any format that `open_training_data` reads.
        documents: for data that contain ids, the collection with the texts.

    Raises:
        ConfigError: development and training are the same split.
        DataError: the data are missing or unreadable, there is neither the split nor enough queries to hold
            out, or every training query is a development query, too.
    """
    settings = recipe.data
    collection = _collection(source if documents is None else documents)
    split = settings.train if Path(source).is_dir() or str(source).startswith("ir_datasets:") else None
    grade = settings.relevant_from if settings.relevant_from > 1 else None
    splits = () if collection is None else collection.splits
    if split is not None and split == settings.development and split in splits:
        raise ConfigError(
            f"{source}: data.train and data.development are both {split!r}, so the model would be evaluated "
            "on its training queries. Name another split for development (--dev-split dev), or the number of "
            "training queries to hold out (--dev-split 100)"
        )
    data = open_training_data(source, split=split, documents=documents, relevant_from=grade)
    if collection is not None and settings.development in splits:
        place = Path(source if documents is None else documents)
        return _with_split(data, collection, str(settings.development), place)
    if settings.held_out:
        rest, held = data.split(settings.held_out, seed_of(recipe.seed, "development"))
        qrels = {query: dict.fromkeys(sorted(held.relevant[query]), 1) for query in held.queries}
        development = DevelopmentSet(held.queries, data.documents, qrels)
        return RecipeData(rest, development, f"{len(held.queries)} training queries held out")
    if settings.development is not None:
        raise DataError(
            f"{source}: there is no split {settings.development!r} for development; there are "
            f"{', '.join(splits) or 'none'}. Name one of them, or hold training queries out (a number)"
        )
    return RecipeData(data)


def _collection(source: str | Path) -> Collection | None:
    is_beir = Path(source).is_dir() and any(Path(source).glob("corpus.jsonl*"))
    if not is_beir and not str(source).startswith("ir_datasets:"):
        return None
    return open_collection(source, passage_words=None)


def _with_split(data: TrainingSet, collection: Collection, split: str, place: Path) -> RecipeData:
    paths = sorted(place.glob(f"qrels/{split}.tsv*"))  # empty for ir_datasets
    files = [{"file": path.as_posix(), "sha256": sha256_file(path)} for path in paths]
    queries = collection.queries(split)
    development = DevelopmentSet(queries, data.documents, collection.qrels(split))
    origin = f"split {split} of {collection.name}"
    try:
        rest = data.without(queries)
    except ConfigError as error:
        raise DataError(
            f"all {len(data):,} training examples are about development queries ({origin}), by id or text, "
            "and would be left out. Name another split for development (--dev-split), or the number of "
            "training queries to hold out (--dev-split 100)"
        ) from error
    return RecipeData(rest, development, origin, files, len(data) - len(rest))


def _described(development: DevelopmentSet) -> dict[str, Any]:
    judged = {query: dict(grades) for query, grades in development.qrels.items()}
    texts = {query: development.queries[query] for query in judged}
    content = json.dumps([texts, judged], sort_keys=True)
    return {"queries": len(judged), "fingerprint": hashlib.sha256(content.encode()).hexdigest()}

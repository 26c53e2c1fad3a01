"""Models as teachers: `ModelTeacher` (dual encoder) and `CrossEncoderTeacher`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, final

import numpy as np
import torch

from counterpoint.encode import EncodeOptions, InteractiveEncoder, Precision, load_interactive
from counterpoint.errors import ConfigError
from counterpoint.index import IndexSettings
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.teachers.teacher import Grader, Teacher
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim, Scorer, Sum
from counterpoint.search import LEXICAL, SearchSettings
from counterpoint.search.settings import plan_of_parts
from counterpoint.types import Ragged, Side
from counterpoint.vectors import Representation, Vectors

__all__ = ["CrossEncoderTeacher", "ModelTeacher"]

Value = TypeVar("Value")
_Sets = Mapping[str, Ragged]


@final
@dataclass(frozen=True)
class ModelTeacher(Teacher):
    """A retrieval model, named as for `load_model`.

    Args:
        source: a preset, a folder, or a hub id.
        scorer: how the model scores. None for its own search settings, which is possible unless they need an
            index (BM25, idf, a normalisation over candidates).
        revision: for a hub id, the commit, tag or branch.
        memory: MiB of encoded texts to keep. The least recently used ones are dropped.
        precision: of the backbone. bf16 is faster on some machines, and rounds.
    """

    source: str
    scorer: Scorer | None = None
    revision: str | None = None
    memory: int = 1024
    precision: Precision = "fp32"

    def load(self, data: TrainingSet) -> Grader:
        """Load the model.

        Raises:
            ArtifactError: there is no such model.
            ConfigError: the model's own search settings need an index, or the scorer needs a vector set that
                the model does not make.
        """
        model = load_model(self.source, self.revision)
        used = () if self.scorer is None else (getattr(part, "on", None) for part in self.scorer.modules())
        if unknown := [on for on in used if isinstance(on, str) and on not in model.sets]:
            raise ConfigError(f"{self.source}: no vector set {unknown[0]!r}; it has {', '.join(model.sets)}")
        encoder = _TextEncoder(model, data, EncodeOptions(precision=self.precision), self.memory * 2**20)
        if self.scorer is not None:
            return _ModelGrader(encoder, self.scorer)
        return _ModelGrader(encoder, *_own_scorer(model, self.source))


@final
@dataclass(frozen=True)
class CrossEncoderTeacher(Teacher):
    """A cross-encoder, named as for `load_interactive`.

    Args:
        source: a folder or a hub id.
        revision: for a hub id, the commit, tag or branch.
        pairs: number of scores to keep. The least recently used ones are dropped.
        precision: of the backbone. bf16 is faster on some machines, and rounds.
    """

    source: str
    revision: str | None = None
    pairs: int = 1_000_000
    precision: Precision = "fp32"

    def load(self, data: TrainingSet) -> Grader:
        """Load the model.

        Raises:
            ArtifactError: there is no such model, or it is not a cross-encoder.
        """
        judge = load_interactive(self.source, self.revision)
        return _PairGrader(judge, data, EncodeOptions(precision=self.precision), self.pairs)


@final
class _ModelGrader(Grader):
    """`scaled` divides each set's score by the highest score that the query can reach, as in search."""

    def __init__(self, encoder: _TextEncoder, scorer: Scorer, scaled: bool = False):
        self._encoder, self._scorer, self._scaled = encoder, scorer.setup().eval(), scaled

    def prepare(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._encoder.keep("query", [query for query, _ in asked])
        self._encoder.keep("document", [name for _, documents in asked for name in documents])

    @torch.inference_mode()
    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        if not documents:
            return []
        q, d = self._encoder.vectors("query", [query]), self._encoder.vectors("document", documents)
        if self._scaled:
            q = {name: _under_ceiling(vectors) for name, vectors in q.items()}
        return self._scorer(q, d)[0].tolist()


@final
class _TextEncoder:
    """Encodes texts by id and keeps the most recent vector sets, up to `room` bytes."""

    def __init__(self, model: Model, data: TrainingSet, options: EncodeOptions, room: int):
        self._model, self._data, self._options = model, data, options
        self._kept = _Kept[_Sets](room, lambda sets: sum(packed.values.nbytes for packed in sets.values()))

    def keep(self, side: Side, ids: Sequence[str]) -> None:
        """Encode texts that are not cached. If they do not all fit, some are encoded again later."""
        self._kept.of([(side, name) for name in ids], self._encode)

    def vectors(self, side: Side, ids: Sequence[str]) -> Representation:
        sets = self._kept.of([(side, name) for name in ids], self._encode)
        return {key: Vectors.pad(Ragged.concatenate([one[key] for one in sets])) for key in sets[0]}

    def _encode(self, keys: Sequence[tuple[str, str]]) -> list[_Sets]:
        of_queries = keys[0][0] == "query"
        texts = self._data.queries if of_queries else self._data.documents
        encode = self._model.encode_query if of_queries else self._model.encode_document
        made = encode([texts[name] for _, name in keys], self._options)
        return [{key: packed.take(np.array([at])) for key, packed in made.items()} for at in range(len(keys))]


@final
class _PairGrader(Grader):
    def __init__(self, judge: InteractiveEncoder, data: TrainingSet, options: EncodeOptions, room: int):
        self._judge, self._data, self._options = judge, data, options
        self._kept = _Kept[float](room, lambda score: 1)

    def prepare(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._kept.of([(query, name) for query, documents in asked for name in documents], self._score)

    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        return self._kept.of([(query, name) for name in documents], self._score)

    def _score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        queries = [self._data.queries[query] for query, _ in pairs]
        documents = [self._data.documents[name] for _, name in pairs]
        return self._judge.scores(queries, documents, self._options).tolist()


@final
class _Kept(Generic[Value]):
    """A least-recently-used cache of values whose sizes sum to at most `room`."""

    def __init__(self, room: int, size: Callable[[Value], int]):
        self._room, self._size, self._used = room, size, 0
        self._held: OrderedDict[tuple[str, str], Value] = OrderedDict()

    def of(
        self, keys: Sequence[tuple[str, str]], make: Callable[[Sequence[tuple[str, str]]], Sequence[Value]]
    ) -> list[Value]:
        """The values of these keys. Missing ones are made in one call."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._held]
        made = dict(zip(missing, make(missing), strict=True)) if missing else {}
        found = {key: made[key] if key in made else self._held.pop(key) for key in dict.fromkeys(keys)}
        self._held.update(found)  # now the newest; the oldest entries are dropped first
        self._used += sum(map(self._size, made.values()))
        while self._used > self._room:
            self._used -= self._size(self._held.popitem(last=False)[1])
        return [found[key] for key in keys]


def _own_scorer(model: Model, source: str) -> tuple[Scorer, bool]:
    """The scorer of a model's own search settings, and whether each part is divided by its ceiling.

    Raises:
        ConfigError: a pair of texts alone cannot be scored this way.
    """
    settings = SearchSettings.for_parts(list(model.sets), model.search)
    needed = ["BM25"] if settings.weights.get(LEXICAL) else []
    needed += ["idf"] if any(settings.idf.values()) else []
    needed += [settings.normalise] if settings.normalise != "none" else []
    needed += ["rank fusion"] if settings.method != "convex" else []
    needed += ["feedback"] if settings.feedback and any(each.pooled for each in model.sets.values()) else []
    if needed:
        raise ConfigError(
            f"ModelTeacher: {source} is searched with {', '.join(needed)}, which needs an index; give it a "
            f"scorer=... (or --weights) of its vector sets ({', '.join(model.sets)})"
        )
    plan = plan_of_parts("hybrid", IndexSettings(lexical=None).layouts(model), False, settings)
    parts = [
        Dot(name) if model.sets[name].pooled else MaxSim(name, name in settings.exact, settings.floors(name))
        for name in plan.weights
    ]
    scorer = Sum(parts, list(plan.weights.values()))
    return scorer, settings.scale == "ceiling" and len(plan.weights) > 1


def _under_ceiling(query: Vectors) -> Vectors:
    """Divide a query's rows by the sum of their lengths. Scores are linear in the rows."""
    ceiling = query.values.norm(dim=2).sum()
    return query.with_values(query.values / ceiling) if ceiling else query

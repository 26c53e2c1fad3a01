"""`BM25Terms`: lexical vectors of a batch's texts, for losses that compare a model with BM25."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch

from counterpoint.config import Setting
from counterpoint.errors import ConfigError
from counterpoint.index import BM25Vectors, LexicalSettings, TermStatistics
from counterpoint.index.analysis import AnalyzerName
from counterpoint.learn.step import Step
from counterpoint.score import MaxSim
from counterpoint.search import LEXICAL
from counterpoint.types import Side
from counterpoint.vectors import Vectors

__all__ = ["BM25Terms", "RunningTerms", "bm25_scores", "lexical_set"]


@final
@dataclass(frozen=True)
class BM25Terms(Setting):
    """Gives the losses of a stage the BM25 vectors of every query and document of a batch.

    They are the step's vector set `lexical`. Each distinct term has a row with one component: its idf in a
    query, its saturated frequency in a document. The row's id is the term's number, so exact match gives
    BM25. Idf and average length are computed from the training collection when the stage begins.

    Args:
        k1: term-frequency saturation. The default is Pyserini's.
        b: document-length normalisation. The default is Pyserini's.
        analyzer: how texts are split into terms.
        repeats: whether a term that occurs twice in a query counts twice, as in our index. False counts it
            once, as RoC's equation does.
    """

    needs_vectors: ClassVar[bool] = True

    k1: float = 0.9
    b: float = 0.4
    analyzer: AnalyzerName = "english"
    repeats: bool = False

    def __post_init__(self) -> None:
        self._settings()  # reports faults now, not after the data are read

    def start(self, documents: Iterable[str], on_progress: Callable[[int], object]) -> RunningTerms:
        """Count the terms of a collection's texts. `on_progress` is called with the number counted."""
        return RunningTerms(
            BM25Vectors.fit(documents, self._settings(), repeats=self.repeats, on_progress=on_progress)
        )

    def restore(self, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> RunningTerms:
        """Restore from the result of `RunningTerms.state`."""
        terms, frequencies = (tensors[name].numpy() for name in ("terms", "frequencies"))
        statistics = TermStatistics(terms, frequencies, state["documents"], state["length"])
        return RunningTerms(BM25Vectors(statistics, self._settings(), repeats=self.repeats))

    def _settings(self) -> LexicalSettings:
        return LexicalSettings(self.k1, self.b, self.analyzer, identifiers=False)


@final
@dataclass(frozen=True)
class RunningTerms:
    """The lexical vectors of a stage, with the collection's statistics."""

    vectors: BM25Vectors

    def of(self, texts: Sequence[str], side: Side, device: torch.device | str) -> Vectors:
        """The vectors of a batch's texts, without gradients. Every process computes all of them."""
        make = self.vectors.queries if side == "query" else self.vectors.documents
        found = Vectors.pad(make(texts))
        assert found.ids is not None
        return Vectors(found.values.to(device), found.mask.to(device), found.ids.to(device))

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """The part of a checkpoint: tensors, and JSON values."""
        counted = self.vectors.statistics
        tensors = {
            "terms": torch.from_numpy(counted.terms.astype(np.int64)),
            "frequencies": torch.from_numpy(counted.frequencies.astype(np.int64)),
        }
        return tensors, {"documents": counted.documents, "length": counted.length}


def lexical_set(step: Step, loss: str) -> tuple[Vectors, Vectors]:
    """The lexical vectors of a step's queries and documents.

    Raises:
        ConfigError: the step has none. The message names `loss`.
    """
    if LEXICAL not in step.q or LEXICAL not in step.d:
        raise ConfigError(
            f"{loss}: this step has no lexical vectors; give the stage lexical=BM25Terms(...), and a model "
            "that makes vectors"
        )
    return step.q[LEXICAL], step.d[LEXICAL]


@torch.no_grad()
def bm25_scores(step: Step, loss: str) -> torch.Tensor:
    """BM25 scores of a step's queries and documents, (q, d): the exact match of their lexical vectors.

    Raises:
        ConfigError: the step has no lexical vectors.
    """
    q, d = lexical_set(step, loss)
    return MaxSim(LEXICAL, exact=True)({LEXICAL: q}, {LEXICAL: d})

"""`Searcher`: search an index with its model.

First stages score every document, or follow a graph, and propose candidates. Every part of the score is then
computed exactly for the union of these candidates, so a hybrid never has to guess a missing score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, repeat
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Among, Index, TextModel
from counterpoint.search.adapt import adapted, evidence_of
from counterpoint.search.explain import explain_hits
from counterpoint.search.feedback import with_feedback
from counterpoint.search.first import NONE, NOTHING, Proposal, propose
from counterpoint.search.fusion import Fusion, fuse
from counterpoint.search.hits import Answer, Hit
from counterpoint.search.pipeline import Pipeline, Retriever
from counterpoint.search.prepared import Candidates, PreparedQuery, Scored, prepare, slopes_of
from counterpoint.search.run import Run, trec_order
from counterpoint.search.settings import LEXICAL, Plan, SearchSettings, Workflow, plan_for
from counterpoint.search.texts import table_of_texts

__all__ = ["Searcher"]

OnProgress = Callable[[int], None]

SCORES = 8_000_000  # scores held at a time; bounds how many queries share one pass over the vectors
TOGETHER = 64  # queries per pass at most, so that a long search reports progress
PASSAGES = 4  # passages fetched per document wanted, if documents were cut into passages


@final
class Searcher:
    """Search an index.

    Args:
        index: the index.
        model: the model that the index was built with; None if only BM25 is used.
        settings: None for those that the index was built with.

    Raises:
        ArtifactError: the model is not the one that the index was built with.
        ConfigError: `exact` or `floor` of the settings names a set that does not support it.
    """

    def __init__(self, index: Index, model: TextModel | None = None, settings: SearchSettings | None = None):
        self.index, self.model = index if model is None else index.bound(model), model
        self.settings = (settings or SearchSettings.for_index(index)).checked(index)
        self._among = Among(self.index.live, self.index.order)

    def with_settings(self, settings: SearchSettings) -> Searcher:
        """Return a searcher of the same index and model with other settings."""
        other = Searcher(self.index, None, settings)
        other.model = self.model  # the index is bound to it already
        other._among = self._among
        return other

    def where(self, condition: str) -> Searcher:
        """Return a searcher that finds only documents whose metadata meets a condition; same settings.

        Documents are filtered before candidates are chosen, so `k` of them are found if there are so many. A
        document's score by each part does not depend on the condition. Adapted weights and feedback depend on
        the remaining candidates.

        Args:
            condition: for example `year >= 2020 and lang in ('en', 'de') and not draft`.

        Raises:
            ConfigError: the condition is malformed, or tests a field that no document has.
        """
        other, found = self.with_settings(self.settings), self.index.matching(condition)
        before = self._among.allowed
        other._among = replace(self._among, allowed=found if before is None else found & before)
        return other

    def search(
        self, query: str, k: int = 10, *, workflow: Workflow = "hybrid", explain: bool = False
    ) -> Answer:
        """The best `k` documents for one query, with the contribution of each part.

        Raises:
            ConfigError: the query is empty, or the index or the model does not support the workflow.
        """
        _check_depth(k)
        if not query.strip():
            raise ConfigError("the query is empty; give some text to search for")
        plan = plan_for(workflow, self.index, self.settings)
        (prepared,) = prepare([query], plan, self.settings, self.index, self.model)
        (found,) = propose([prepared], plan, k, self.settings, self.index, self._among)
        candidates = self._candidates(prepared, plan, found, evidence=bool(plan.adapt))
        scored = self._scored(candidates, plan, self.settings)
        near = at_least_best(scored.scores, k)
        documents = self.index.documents_at(scored.positions[near])
        best = trec_order([each.id for each in documents], scored.scores[near])[:k]
        hits = tuple(
            Hit(rank, float(scored.scores[near[i]]), documents[i], scored.parts(int(near[i])))
            for rank, i in enumerate(best.tolist(), start=1)
        )
        if explain:
            hits = explain_hits((self.index, self.model), prepared, plan, scored, hits)
        shares = scored.slopes if self.settings.adapts and len(scored.names) > 1 else {}
        return Answer(query, workflow, hits, shares)

    def run(
        self,
        queries: Mapping[str, str],
        k: int = 1000,
        *,
        workflow: Workflow = "hybrid",
        candidates: Run | None = None,
        on_progress: OnProgress = lambda done: None,
    ) -> Run:
        """Rank documents for many queries (id to text).

        If documents were cut into passages, a document's score is the maximum over its passages (maxP). An
        empty or blank query finds nothing.

        Args:
            queries: id to text.
            k: documents kept for each query.
            workflow: how to search.
            candidates: score only these documents (reranking); a query that is not in it finds nothing.
            on_progress: called with the number of queries done.

        Raises:
            DataError: a candidate is not in the index.
        """
        plan = plan_for(workflow, self.index, self.settings)
        return self._run(queries, k, plan, candidates, on_progress)

    def score_texts(
        self, query: str, texts: Sequence[str], *, workflow: Workflow = "hybrid"
    ) -> Float[np.ndarray, " texts"]:
        """Score texts that need not be in the index, by its model, its weights and its statistics.

        A text gets the score that a document with this text has in the index, apart from two differences.
        Its vectors are not rounded to the codec. Feedback is left out, so that a score does not depend on
        the other texts. (With a fusion of ranks, or one that normalises over candidates, it does.)

        Args:
            query: the query.
            texts: at least one.
            workflow: which parts score.

        Raises:
            ConfigError: the query is empty, or the index or the model does not support the workflow.
        """
        if not query.strip():
            raise ConfigError("the query is empty; give some text to search for")
        plan = replace(plan_for(workflow, self.index, self.settings), feedback=())
        (prepared,) = prepare([query], plan, self.settings, self.index, self.model)
        found = NOTHING
        if plan.adapt:
            (found,) = propose([prepared], plan, 1, self.settings, self.index, self._among)
        evidence = self._candidates(prepared, plan, found, evidence=bool(plan.adapt)).evidence
        table = table_of_texts(prepared, plan, (self.index, self.model), texts)
        return self._scored(Candidates(np.arange(len(texts)), table, evidence), plan, self.settings).scores

    def rank_parts(
        self,
        queries: Mapping[str, str],
        k: int,
        parts: Sequence[str],
        on_progress: OnProgress = lambda done: None,
    ) -> dict[str, Run]:
        """For each part (a vector set or `lexical`), rank documents by it alone, as it does as a first stage.

        Other arguments as for `run`; the number of queries done is over all parts.

        Raises:
            ConfigError: the index does not have a part.
        """
        has = [*([LEXICAL] if self.index.lexical is not None else []), *self.index.layouts]
        runs: dict[str, Run] = {}
        for part in parts:
            if part not in has:
                raise ConfigError(f"this index has no part {part!r}; it has {', '.join(has)}")
            before = len(runs) * len(queries)
            plan = Plan(part, (part,), {part: 1.0})
            runs[part] = self._run(
                queries, k, plan, None, lambda done, before=before: on_progress(before + done)
            )
        return runs

    def candidates(
        self,
        queries: Mapping[str, str],
        k: int = 1000,
        *,
        workflow: Workflow = "hybrid",
        on_progress: OnProgress = lambda done: None,
    ) -> Iterator[tuple[str, Candidates]]:
        """Yield, query by query, each part's scores of the candidates before they are weighted.

        The parts' evidence is there whether or not the weights are adapted. Arguments as for `run`, with `k`
        documents from each first stage.
        """
        plan = plan_for(workflow, self.index, self.settings)
        yield from self._all_candidates(queries, self._depth(k), plan, None, on_progress, evidence=True)

    def run_each(
        self,
        queries: Mapping[str, str],
        k: int,
        settings: Sequence[SearchSettings],
        on_progress: OnProgress = lambda done: None,
    ) -> Iterator[Run]:
        """Run the hybrid with several settings, one run each, in the time of one search.

        Candidates and the parts' scores depend neither on weights, if they are non-zero, nor on feedback. The
        settings may differ from the searcher's own only in weights (of the same parts), `adapt` and feedback.
        Other arguments as for `run`.

        Raises:
            ConfigError: some settings differ in more, or the index does not support one.
        """
        plans = [plan_for("hybrid", self.index, each) for each in settings]
        if not plans:
            return
        own, adapts = replace(plans[0], adapt={}), any(plan.adapt for plan in plans)
        for each, plan in zip(settings, plans, strict=True):
            if plan.weights.keys() != own.weights.keys():
                raise ConfigError(
                    f"weights of {', '.join(plan.weights)} together with weights of {', '.join(own.weights)}"
                )
            if len(own.weights) == 1 and plan.feedback != own.feedback:
                raise ConfigError(
                    "a single part is scaled only with feedback; search with and without feedback separately"
                )
            if each.apart_from_weights() != self.settings.apart_from_weights():
                raise ConfigError("settings searched together may differ only in weights and feedback")
        candidates = self._all_candidates(queries, self._depth(k), own, None, on_progress, evidence=adapts)
        found = dict(candidates)
        for each, plan in zip(settings, plans, strict=True):
            scored = {qid: self._scored(candidates, plan, each) for qid, candidates in found.items()}
            yield self._best(scored, k, plan)

    def __call__(self, queries: Mapping[str, str], run: Run | None = None) -> Run:
        """Run the hybrid over all documents, or over those of `run`, as a `Retriever`."""
        return self.run(queries, candidates=run)

    def __rshift__(self, other: Retriever) -> Pipeline:
        """Return a pipeline: `other` reranks what this searcher finds."""
        return Pipeline((self,)) >> other

    # -- steps -----------------------------------------------------------------------------------------

    def _run(
        self, queries: Mapping[str, str], k: int, plan: Plan, candidates: Run | None, on_progress: OnProgress
    ) -> Run:
        depth, adapts = self._depth(k), bool(plan.adapt)
        found = self._all_candidates(queries, depth, plan, candidates, on_progress, evidence=adapts)
        return self._best({qid: self._scored(each, plan, self.settings) for qid, each in found}, k, plan)

    @cached_property
    def _passages(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for passage, document in self.index.parents.items():
            found.setdefault(document, []).append(passage)
        return found

    def _depth(self, k: int) -> int:
        """Number of documents, or of passages, to retrieve in order to find `k` documents."""
        _check_depth(k)
        return k * PASSAGES if self.index.parents else k

    def _best(self, found: Mapping[str, Scored], k: int, plan: Plan) -> Run:
        """The best `k` documents by the candidates' scores; reads ids only of rows that may be among them."""
        ranked = {}
        for qid, scored in found.items():
            rows = at_least_best(scored.scores, len(scored.scores) if self.index.parents else k)
            names = self.index.names_of(scored.positions[rows])
            ranked[qid] = dict(zip(names, scored.scores[rows].tolist(), strict=True))
        run = Run(ranked, provenance={"workflow": plan.workflow, "tag": f"counterpoint-{plan.workflow}"})
        if self.index.parents:
            passages = {name for query in run for name, _ in run[query]}
            run = run.max_passage({name: self.index.parents.get(name, name) for name in passages})
        return run.top(k)

    def _all_candidates(
        self,
        queries: Mapping[str, str],
        depth: int,
        plan: Plan,
        given: Run | None,
        on_progress: OnProgress,
        *,
        evidence: bool,
    ) -> Iterator[tuple[str, Candidates]]:
        """Yield, query by query, the candidates (found or given) and each part's scores of them."""
        stream, done = iter(queries.items()), 0
        while batch := list(islice(stream, min(TOGETHER, max(1, SCORES // max(1, self.index.end))))):
            prepared = prepare([text for _, text in batch], plan, self.settings, self.index, self.model)
            proposals: Iterator[Proposal] = repeat(NOTHING)
            if given is None or evidence:  # with given candidates, only evidence needs those found
                wanted = depth if given is None else 1
                proposals = propose(prepared, plan, wanted, self.settings, self.index, self._among)
            for (qid, text), query, found in zip(batch, prepared, proposals, strict=False):
                asked = found if given is None else self._given(given, qid)
                asked, found = (asked, found) if text.strip() else (NOTHING, NOTHING)
                yield qid, self._candidates(query, plan, found, asked, evidence=evidence)
            done += len(batch)
            on_progress(done)

    def _given(self, run: Run, query: str) -> Proposal:
        """Positions of given documents, for reranking; no part has scored them yet."""
        ranked = [name for name, _ in run[query]] if query in run else []
        names = [passage for name in ranked for passage in self._passages.get(name, [name])]
        positions = [self.index.position_of(name) for name in names]
        if None in positions:
            raise DataError(
                f"query {query!r}: candidate {names[positions.index(None)]!r} is not in the index; "
                "were the run and the index made from one corpus?"
            )
        found = np.array(positions, dtype=np.int64)
        allowed = self._among.allowed
        return Proposal(found if allowed is None else found[allowed[found]], {}, NONE)

    def _candidates(
        self,
        query: PreparedQuery,
        plan: Plan,
        found: Proposal,
        asked: Proposal | None = None,
        *,
        evidence: bool,
    ) -> Candidates:
        """Every part's exact scores of the candidates found, or of those asked for, before they are weighted.

        Evidence for adapted weights is that of the candidates found, even if others are asked for.
        """
        asked = found if asked is None else asked
        table = self._table(query, plan, asked)
        if not evidence:
            return Candidates(asked.positions, table, {})
        of_found = table if asked is found else self._table(query, plan, found)
        return Candidates(asked.positions, table, self._evidence(query, plan, found, of_found))

    def _evidence(
        self, query: PreparedQuery, plan: Plan, found: Proposal, table: Float[np.ndarray, "c parts"]
    ) -> dict[str, float]:
        """The evidence of each part, from its scores of the candidates found."""
        every = found.pool is found.positions  # if not more were asked for; then nothing is looked up
        pool = table if every else table[np.isin(found.positions, found.pool, assume_unique=True)]
        parts = dict(zip(plan.weights, pool.T, strict=True)) | dict(found.whole)
        known = self.index.lexical.known(query.text) if LEXICAL in parts and self.index.lexical else 0.0
        several = (part for part in parts if part != LEXICAL and not self.index.layouts[part].pooled)
        rows = {part: self.index.mean_rows(part, found.pool) for part in several}
        return evidence_of(parts, known, rows)

    def _scored(self, found: Candidates, plan: Plan, settings: SearchSettings) -> Scored:
        weights = adapted(plan.weights, plan.adapt, found.evidence) if plan.adapt else plan.weights
        fusion = Fusion(weights=weights, method="convex")
        if len(plan.weights) + len(plan.feedback) > 1:
            fusion = replace(fusion, method=settings.method, normalise=settings.normalise)
        fused, contributions = fuse(found.table, fusion)
        slopes = slopes_of(found.table, contributions, fusion)
        scored = Scored(found.positions, fused, contributions, tuple(plan.weights), slopes)
        return with_feedback(self.index, scored, plan, settings)

    def _table(self, query: PreparedQuery, plan: Plan, found: Proposal) -> Float[np.ndarray, "c parts"]:
        """The candidates' scores by each part, divided by its ceiling."""
        columns = []
        for part in plan.weights:
            scores = found.known.get(part)
            if scores is None:
                scores = self.index.part(part).scores(query.asked(part), found.positions)
            columns.append(scores / query.ceilings[part])
        return np.stack(columns, axis=1).astype(np.float64)


def at_least_best(scores: Float[np.ndarray, " c"], k: int) -> Int[np.ndarray, " b"]:
    """Rows that may be among the best `k`: these, and all with the same score as the last."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k])


def _check_depth(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise ConfigError(f"k must be a whole number, found {k!r}")
    if k < 1:
        raise ConfigError(f"k must be at least 1, found {k}")

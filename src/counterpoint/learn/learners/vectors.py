"""`VectorLearner`: training of a model that makes vectors, with a scorer and optionally a negative cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from torch import nn

from counterpoint.learn.batches import Batch, Drawn, join_drawn, one_owner_each
from counterpoint.learn.cache import RunningCache
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.development import DevelopmentSet, retrieve
from counterpoint.learn.gradient_cache import TextEncoding
from counterpoint.learn.learners.learner import Learner, Made
from counterpoint.learn.lexical import RunningTerms
from counterpoint.learn.stages import Train
from counterpoint.learn.step import Step
from counterpoint.learn.training_run import TrainingRun
from counterpoint.model import Model
from counterpoint.search import LEXICAL
from counterpoint.types import Side
from counterpoint.vectors import Representation

__all__ = ["VectorLearner"]


@final
class VectorLearner(Learner):
    """Compares every query of the batch with every document of the batch, by the stage's scorer.

    Raises:
        ConfigError: there is no scorer.
    """

    def __init__(self, model: Model, run: TrainingRun, stage: Train):
        super().__init__(run, stage)
        self.model = model
        self.scorer = run.scorer_of(stage)
        self.encoding = TextEncoding(model, run.processes, stage.chunk, self.autocast)
        self.cache: RunningCache | None = None
        self.hiding = self.masks(model.encoder.encoder("document").backbone.tokenizer)
        self.terms: RunningTerms | None = None

    def roots(self) -> Mapping[str, nn.Module]:
        """The encoder's are `query.`, `document.` (if it is a separate one), `gates.` and `shared.`."""
        return {"": self.model.encoder, "transforms.": self.model.transforms, "scorer.": self.scorer}

    def parts(self) -> Sequence[nn.Module]:
        """Each side's backbones and heads, the shared modules, the transforms and the scorer."""
        encoder = self.model.encoder
        sides = [side for side in (encoder.query, encoder.document) if side is not None]
        halves = [half for side in sides for half in (*side.backbones, side.heads)]
        return [*halves, encoder.gates, encoder.shared, self.model.transforms, self.scorer]

    def make(self, batch: Batch, seed: int, number: int) -> Made:
        """Encode both sides. The documents include the negatives drawn from the cache."""
        q = self.encoding.encode(batch.queries, "query", seed)
        if self.cache is not None:
            batch = join_drawn(batch, self._drawn(q.vectors, batch, number), self.run.job.data)
        alter = None
        if self.hiding is not None:
            batch, owners = one_owner_each(batch)
            alter = self.hiding.documents(batch, owners, number)
        d = self.encoding.encode(batch.documents, "document", seed, alter)

        def backward() -> None:
            q.backward()
            d.backward()
            if self.cache is not None:
                on = str(self.cache.settings.on)
                self.cache.write_back(batch.document_ids, d.vectors[on].values[:, 0])

        targets = batch.targets.to(self.device)
        scores = self.scorer.batch_scores(q.vectors, d.vectors, targets.own)
        queries = {**q.vectors, **self._lexical(batch.queries, "query")}
        documents = {**d.vectors, **self._lexical(batch.documents, "document")}
        return Made(Step(queries, documents, scores, targets), backward)

    def evaluate(self, development: DevelopmentSet) -> dict[str, float]:
        """Search all documents."""
        return retrieve(
            self.model,
            development,
            self.run.job.measures,
            on_progress=lambda done: self.run.reporter.busy("evaluating", done),
        )

    # -- state other than the model --------------------------------------------------------------------

    def start(self, checkpoint: Checkpoint | None) -> None:
        """Count terms and fill the cache, or restore both."""
        documents, busy = self.run.job.data.documents, self.run.reporter.busy
        lexical, cache = self.stage.lexical, self.stage.cache
        if lexical is not None and checkpoint is not None:
            self.terms = lexical.restore(checkpoint.tensors["lexical"], checkpoint.state["lexical"])
        elif lexical is not None:
            self.terms = lexical.start(documents.values(), lambda done: busy("counting terms", done))
        if cache is None:
            return
        self.cache = RunningCache(cache, self.model.sets, sorted(documents), self.run.job.seed, self.device)
        if checkpoint is not None:
            self.cache.restore(checkpoint.tensors["cache"], checkpoint.state["cache"])
        else:
            self.cache.fill(self._encode_documents, lambda held: busy("filling the negative cache", held))

    def after_step(self) -> None:
        """Refresh a part of the cache."""
        if self.cache is not None:
            self.cache.refresh(self._encode_documents)

    def state(self) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, Any]]:
        """The state of the cache and of the terms, if they exist."""
        parts = {"cache": self.cache, "lexical": self.terms}
        kept = {name: part.state() for name, part in parts.items() if part is not None}
        tensors = {name: found for name, (found, _) in kept.items()}
        return tensors, {name: found for name, (_, found) in kept.items()}

    def _lexical(self, texts: Sequence[str], side: Side) -> Representation:
        return {} if self.terms is None else {LEXICAL: self.terms.of(texts, side, self.device)}

    def _drawn(self, q: Representation, batch: Batch, number: int) -> Drawn:
        """Draw hard negatives for the batch's queries, and return them with the candidates' scores.

        Both are the first process's, because a rounding error could draw another document on another process.
        """
        assert self.cache is not None
        detached = {name: vectors.with_values(vectors.values.detach()) for name, vectors in q.items()}
        excluded = [
            {*self.run.job.data.relevant.get(query, ()), *(batch.document_ids[at] for at in own if at >= 0)}
            for query, own in zip(batch.query_ids, batch.targets.own.tolist(), strict=True)
        ]
        drawn = self.cache.draw(lambda documents: self.scorer(detached, documents), excluded, number)
        documents = self.run.processes.first_says(drawn.documents)
        return Drawn(documents, self.run.processes.first_tensor(drawn.scores))

    def _encode_documents(self, ids: Sequence[str]) -> torch.Tensor:
        assert self.cache is not None
        texts = [self.run.job.data.documents[document] for document in ids]
        return self.encoding.plainly(texts, "document")[str(self.cache.settings.on)].values[:, 0]

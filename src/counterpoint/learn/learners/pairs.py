"""`PairLearner`: training of a cross-encoder, which reads each query with each of its own documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from torch import nn

from counterpoint.encode import InteractiveEncoder
from counterpoint.errors import ConfigError
from counterpoint.learn.batches import Batch, own_pairs
from counterpoint.learn.development import DevelopmentSet, rerank
from counterpoint.learn.gradient_cache import PairEncoding
from counterpoint.learn.learners.learner import Learner, Made
from counterpoint.learn.stages import Train
from counterpoint.learn.step import cross_step
from counterpoint.learn.training_run import TrainingRun

__all__ = ["PairLearner"]


@final
class PairLearner(Learner):
    """Scores pairs and makes no vectors. There is no scorer, and each query sees its own documents only.

    Raises:
        ConfigError: the stage has a scorer, a negative cache, or BM25's vectors.
    """

    def __init__(self, model: InteractiveEncoder, run: TrainingRun, stage: Train):
        super().__init__(run, stage)
        given = {"scorer": stage.scorer or run.job.scorer, "cache": stage.cache, "lexical": stage.lexical}
        faults = [name for name, value in given.items() if value is not None]
        if faults:
            raise ConfigError(
                *(f"{stage.name}: {name} needs vectors, and a cross-encoder makes none" for name in faults)
            )
        self.model = model
        self.encoding = PairEncoding(model, run.processes, stage.chunk, self.autocast)
        self.hiding = self.masks(model.backbone.tokenizer)

    def roots(self) -> Mapping[str, nn.Module]:
        """`backbone.` and `head.`."""
        return {"": self.model}

    def parts(self) -> Sequence[nn.Module]:
        """Backbone and head."""
        return [self.model.backbone, self.model.head]

    def make(self, batch: Batch, seed: int, number: int) -> Made:
        """Score the pairs. The scores are the leaves."""
        pairs = list(zip(*own_pairs(batch), strict=True))
        alter = None if self.hiding is None else self.hiding.pairs(batch, number)
        scored = self.encoding.encode(pairs, "pair", seed, alter)
        scores = scored.vectors["score"].values[:, 0, 0]
        return Made(cross_step(scores, batch.targets.to(self.device)), scored.backward)

    def evaluate(self, development: DevelopmentSet) -> dict[str, float]:
        """Rerank BM25's best documents."""
        return rerank(
            self.model,
            development,
            self.run.first_stage,
            self.run.job.measures,
            device=self.device,
            on_progress=lambda done: self.run.reporter.busy("evaluating", done),
        )

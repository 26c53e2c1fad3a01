"""`AlignmentStop`: DAFT's stop criterion for the alignment stage, with a guard against collapse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from counterpoint.encode import EncodeOptions, InteractiveEncoder
from counterpoint.errors import ConfigError
from counterpoint.learn.limits import no_shares, too_low
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stop import Situation, Stop
from counterpoint.measure.alignment import DAFT_DELTA, distinct_texts, divergence, profile
from counterpoint.model import Model

__all__ = ["AlignmentStop"]

COLLAPSED = "collapsed"


@final
@dataclass(frozen=True)
class AlignmentStop(Stop):
    """Stop when both encoders give development queries similar vectors: KL₁(document side ‖ query side).

    Both sides encode the same query texts (DAFT, section 4.2.2). The reason for stopping begins with one of
    three words. `aligned:` the estimate is below `delta`. `stalled:` it has not fallen for `patience` looks.
    `collapsed:` one of these holds, but the document side has lost its spread since the first look. This
    guard is our addition. The estimate does not depend on scale, so it also falls when all documents move to
    one point (possible where both sides share a trained projection).

    `least_match` is our addition, too. If the document side is spread widely, the estimate is below the
    paper's threshold even for queries that all lie at one point (CLS states of MiniLM's first two layers: 59
    of 125, mean cosine .999). A query side with much less spread than the document side is therefore not
    aligned.

    If more than 1 % of the queries coincide, a look has no estimate (`measure.alignment.divergence`) and
    decides nothing. For encoders that start equal, such an estimate is thousands below 0 and does not mean
    alignment.

    A look returns `alignment.kl` where it can be estimated, `alignment.coincident` (the share of
    document-side vectors that coincide with another or with a query-side one) and `alignment.delta`. For each
    side it also returns `.cosine` (mean cosine of two texts) and `.rank` (participation ratio). See
    `counterpoint.measure.alignment` for the definitions.

    Args:
        on: the vector set. May be omitted if the model makes only one.
        delta: the threshold. None for 0.488 times the vector's dimension (the paper's 250 at 512).
        patience: number of looks without a new lowest estimate.
        sample: maximum number of development queries, the same ones at every look.
        least_room: smallest share of its initial 1 − mean cosine that the document side must keep.
        least_rank: smallest share of its initial effective rank that the document side must keep.
        least_match: smallest share of the document side's 1 − mean cosine, and of its effective rank, that
            the query side must have to count as aligned. 0 for the paper's rule.
        every: steps between looks. None for every evaluation, which is once per epoch by default.
    """

    needs_vectors: ClassVar[bool] = True

    on: str | None = None
    delta: float | None = None
    patience: int = 3
    sample: int = 2000
    least_room: float = 0.5
    least_rank: float = 0.5
    least_match: float = 0.5
    every: int | None = None

    def __post_init__(self) -> None:
        faults = too_low(self, "AlignmentStop", patience=1, sample=2, every=1)
        faults += no_shares(self, "AlignmentStop", "least_room", "least_rank", "least_match")
        if faults:
            raise ConfigError(*faults)

    def look(self, situation: Situation) -> dict[str, float]:
        """Encode the development queries with both sides and compare the vectors.

        Raises:
            ConfigError: fewer than two different queries, no vectors, or an ambiguous or unknown vector set.
            DataError: vectors that are not finite, or both sides output one and the same point.
        """
        model = situation.model
        if isinstance(model, InteractiveEncoder):
            raise ConfigError("AlignmentStop compares vectors, and a cross-encoder makes none")
        texts = self._texts(situation)
        name = self._set_of(model)
        # Equal encoders must give equal vectors, so neither side is rounded.
        options = EncodeOptions(device=next(model.parameters()).device, precision="fp32")
        query = model.encode_query(texts, options)[name].values
        document = model.encode_document(texts, options)[name].values
        sides = {"query": profile(query), "document": profile(document)}
        estimate = divergence(document, query)
        found = {} if estimate.kl is None else {"alignment.kl": estimate.kl}
        found |= {
            "alignment.coincident": estimate.coincident / estimate.rows,
            "alignment.delta": DAFT_DELTA * document.shape[1] if self.delta is None else self.delta,
        }
        for side, numbers in sides.items():
            found[f"alignment.{side}.cosine"] = numbers.cosine
            found[f"alignment.{side}.rank"] = numbers.rank
        return found

    def decide(self, history: Sequence[Mapping[str, float]]) -> str | None:
        """Stop if aligned or stalled. The reason is `collapsed` if the document side has lost its spread."""
        values = [found["alignment.kl"] for found in history if "alignment.kl" in found]
        if not history or "alignment.kl" not in history[-1]:
            return None
        now, delta = values[-1], history[-1]["alignment.delta"]
        if now < delta and self._matches(history[-1]):
            reason = f"aligned: KL {now:.4g} is below {delta:.4g}"
        elif len(values) > self.patience and min(values[-self.patience :]) >= min(values[: -self.patience]):
            reason = f"stalled: KL has not fallen below {min(values):.4g} for {self.patience} looks"
        else:
            return None
        lost = self._lost(history[0], history[-1])
        return f"{COLLAPSED}: {lost} (it would have ended as {reason})" if lost else reason

    def is_failure(self, reason: str) -> bool:
        """True for a collapse, after which the next stage would start from encoders that are not aligned."""
        return reason.startswith(COLLAPSED)

    def _matches(self, now: Mapping[str, float]) -> bool:
        """Whether the query side has enough spread compared with the document side."""
        room = {side: 1 - now[f"alignment.{side}.cosine"] for side in ("query", "document")}
        rank = {side: now[f"alignment.{side}.rank"] for side in ("query", "document")}
        return all(found["query"] >= self.least_match * found["document"] for found in (room, rank))

    def _lost(self, first: Mapping[str, float], now: Mapping[str, float]) -> str:
        """How the document side has lost spread since the first look. Empty if it has not."""
        cosine, rank = "alignment.document.cosine", "alignment.document.rank"
        if 1 - now[cosine] < self.least_room * (1 - first[cosine]):
            return f"documents point in one direction, mean cosine {now[cosine]:.3f}, was {first[cosine]:.3f}"
        if now[rank] < self.least_rank * first[rank]:
            return f"documents use few dimensions, effective rank {now[rank]:.1f}, was {first[rank]:.1f}"
        return ""

    def _texts(self, situation: Situation) -> list[str]:
        """Distinct development queries, because a duplicate would be its own nearest neighbour."""
        queries = situation.development.queries if situation.development is not None else {}
        texts = distinct_texts(queries.values())
        if len(texts) < 2:
            raise ConfigError(
                f"AlignmentStop compares the encoders on development queries and found {len(texts)} "
                "different ones; give the run a development split or hold queries out"
            )
        if len(texts) <= self.sample:
            return texts
        chosen = np.random.default_rng(seed_of("alignment")).choice(len(texts), self.sample, replace=False)
        return [texts[at] for at in np.sort(chosen)]

    def _set_of(self, model: Model) -> str:
        names = list(model.sets)
        if self.on is None and len(names) == 1:
            return names[0]
        if self.on not in names:
            asked = "name one with on=…" if self.on is None else f"there is no {self.on!r}"
            raise ConfigError(f"AlignmentStop: the model makes the sets {', '.join(names)}; {asked}")
        return self.on

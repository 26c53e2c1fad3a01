"""`AlignmentStop`: DAFT's criterion for the end of the alignment stage, guarded against collapse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from counterpoint.encode import EncodeOptions, InteractiveEncoder
from counterpoint.errors import ConfigError
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stop import Situation, Stop
from counterpoint.measure.alignment import DAFT_DELTA, distinct_texts, divergence, profile
from counterpoint.model import Model

__all__ = ["AlignmentStop"]

COLLAPSED = "collapsed"


@final
@dataclass(frozen=True)
class AlignmentStop(Stop):
    """Stop once queries look alike to both encoders: KL₁(document side ‖ query side) of development queries.

    Both sides encode the same query texts (DAFT, section 4.2.2). The stage ends with a reason of one of three
    kinds, named first: `aligned:` the estimate is below `delta`; `stalled:` it has not fallen for `patience`
    looks; `collapsed:` one of these holds, but the document side has lost its spread since the first look.
    That guard is ours: the estimate is invariant to scale, so it falls as well when all documents move to one
    point (it can, where a projection that both sides share is trained).

    So is `least_match`. Where the document side is spread widely, the estimate is below the paper's threshold
    even for queries that are all at one point (CLS states of MiniLM's first two layers: 59 of 125, mean
    cosine .999), so a query side with much less spread than the document side does not count as aligned.

    A look at which more than 1 % of the queries coincide has no estimate (`measure.alignment.divergence`) and
    decides nothing: such a number is thousands below 0 for encoders that begin equal, and no alignment.

    A look gives `alignment.kl` where it can be estimated, `alignment.coincident` (the share of document-side
    vectors that coincide with another or with a query-side one), `alignment.delta`, and of each side
    `.cosine` (mean cosine of two texts) and `.rank` (participation ratio), as
    `counterpoint.measure.alignment` defines them.

    Args:
        on: the vector set; may be left out where the model makes one only.
        delta: the threshold; None for 0.488 of a vector's components, which is the paper's 250 at 512.
        patience: looks without a new lowest estimate.
        sample: development queries at most; the same at every look.
        least_room: 1 − mean cosine of the document side must keep this share of what it was.
        least_rank: so must its effective rank.
        least_match: share of the document side's 1 − mean cosine, and of its effective rank, that the query
            side must have to count as aligned; 0 for the paper's rule.
        every: steps between looks; None for every evaluation, which is once an epoch unless said otherwise.
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
        low = {"patience": 1, "sample": 2, "every": 1}
        faults = [
            f"AlignmentStop: {name} must be at least {least}, found {value}"
            for name, least in low.items()
            if (value := getattr(self, name)) is not None and value < least
        ]
        faults += [
            f"AlignmentStop: {name} is a share between 0 and 1, found {value}"
            for name in ("least_room", "least_rank", "least_match")
            if not 0 <= (value := getattr(self, name)) <= 1
        ]
        if faults:
            raise ConfigError(*faults)

    def look(self, situation: Situation) -> dict[str, float]:
        """Encode the development queries on both sides and compare.

        Raises:
            ConfigError: fewer than two different queries, no vectors, or it is not clear which set is meant.
            DataError: vectors that are not finite, or both sides output one and the same point.
        """
        model = situation.model
        if isinstance(model, InteractiveEncoder):
            raise ConfigError("AlignmentStop compares vectors, and a cross-encoder makes none")
        texts = self._texts(situation)
        name = self._set_of(model)
        # Texts that both sides encode alike must coincide, so neither side's vectors are rounded.
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
        """Stop if aligned or stalled, and say `collapsed` instead where the document side is."""
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
        """A collapse: the stages after it begin with encoders that are not aligned."""
        return reason.startswith(COLLAPSED)

    def _matches(self, now: Mapping[str, float]) -> bool:
        """Whether the query side is spread about as widely as the document side."""
        room = {side: 1 - now[f"alignment.{side}.cosine"] for side in ("query", "document")}
        rank = {side: now[f"alignment.{side}.rank"] for side in ("query", "document")}
        return all(found["query"] >= self.least_match * found["document"] for found in (room, rank))

    def _lost(self, first: Mapping[str, float], now: Mapping[str, float]) -> str:
        """What the document side has lost since the first look; empty if it has kept its spread."""
        cosine, rank = "alignment.document.cosine", "alignment.document.rank"
        if 1 - now[cosine] < self.least_room * (1 - first[cosine]):
            return f"documents point in one direction, mean cosine {now[cosine]:.3f}, was {first[cosine]:.3f}"
        if now[rank] < self.least_rank * first[rank]:
            return f"documents use few dimensions, effective rank {now[rank]:.1f}, was {first[rank]:.1f}"
        return ""

    def _texts(self, situation: Situation) -> list[str]:
        """Different development queries, since an equal one would be the nearest neighbour."""
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

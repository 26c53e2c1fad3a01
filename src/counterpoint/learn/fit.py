"""What is learnt from vectors alone, with the encoder frozen: a `Fit` stage, and a map put behind a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch
from torch import nn

from counterpoint.encode import DualEncoder, Encoder, Head, Linear, Mean, Routed, TokenVectors
from counterpoint.errors import ConfigError
from counterpoint.index.kernels import idf_of
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Fit
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import MaxSim
from counterpoint.transform import Flow, Normalise, Transform, Whitening
from counterpoint.vectors import Vectors

if TYPE_CHECKING:
    from counterpoint.learn.trainer import Run

__all__ = ["FitTexts", "Level", "fit", "fit_behind", "linear_of", "recentre_behind", "tokenwise_of"]

PIECE = 512  # texts encoded at a time

Level = Literal["token", "sequence"]
"""Whether a map is of every token's vector or of the one vector that a text is pooled to."""


@dataclass(frozen=True)
class FitTexts:
    """What a map is fitted to the vectors of; every row counts the same, whichever side it is from.

    Attributes:
        documents: their texts.
        queries: theirs.
        on_progress: called with the number of texts that have been encoded.
    """

    documents: Sequence[str]
    queries: Sequence[str] = ()
    on_progress: Callable[[int], object] = lambda done: None

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.documents) + len(self.queries)


def fit(run: Run, stage: Fit, model: Model) -> None:
    """Carry out the stage.

    Raises:
        ConfigError: the set has no such maps, or no projection that principal directions could be put into.
    """
    names, data = list(run.job.data.documents), run.job.data
    rng = np.random.default_rng(seed_of(run.job.seed, "fit", stage.name))
    count = len(names) if stage.documents is None else min(stage.documents, len(names))
    documents = [data.documents[names[at]] for at in rng.permutation(len(names))[:count].tolist()]
    if stage.what == "idf":
        return _fit_idf(run, stage, model, documents)
    queries = list(data.queries.values()) if stage.queries else []
    steps, encoder = _steps(stage, model)
    total = count + len(queries)
    run.reporter.stage(stage.name, total * len(steps), 0)
    for place, step in enumerate(steps):
        texts = FitTexts(
            documents, queries, lambda done, first=total * place: run.reporter.step(first + done, {})
        )
        device = run.accelerator.device
        step.fit(_rows(encoder, stage.on, texts, steps[:place], device))
    if stage.what == "projection":
        _into_projection(cast(Whitening, steps[0]), cast(Linear, linear_of(model.encoder, stage.on)))


def _fit_idf(run: Run, stage: Fit, model: Model, texts: Sequence[str]) -> None:
    """Give every scorer that weighs the set by idf that of the documents; special tokens have none."""
    inside = (part for module in run.modules().values() for part in module.modules())
    scorers = [part for part in inside if isinstance(part, MaxSim) and part.idf and part.on == stage.on]
    if not scorers:
        return run.reporter.note(f"{stage.name}: no scorer weighs {stage.on!r} by idf, so nothing is counted")
    run.reporter.stage(stage.name, len(texts), 0)
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), PIECE):
        for ids in model.row_ids(texts[start : start + PIECE], stage.on, "document"):
            counts.update(np.unique(ids).tolist())
        run.reporter.step(min(start + PIECE, len(texts)), {})
    special = model.sets[stage.on].special
    words = sorted(counts.keys() | set(special))
    idf = idf_of(np.array([counts[word] for word in words]), len(texts))
    idf[np.isin(words, special)] = 0
    for scorer in scorers:
        unseen = float(idf_of(np.zeros(1), len(texts))[0])
        scorer.set_idf(torch.tensor(words), torch.from_numpy(idf), unseen)


def fit_behind(
    model: Model,
    on: str,
    declare: Callable[[int], Sequence[Transform]],
    texts: FitTexts,
    level: Level | None = None,
    on_step: Callable[[int, int, float], object] | None = None,
) -> Model:
    """Fit maps to a set's vectors as they are, and put them behind what the set has; then unit length.

    The model changes, in place. Queries and documents pass the same map.

    Args:
        model: whose encoder and maps stay as they are.
        on: the vector set.
        declare: what is fitted, each behind the one before, given the number of components of the vectors.
        texts: to whose vectors; they are encoded once for every map.
        level: "token" maps every token's vector: of a set of one row a text those that its `Mean` head
            takes the mean of (Isotropic DR, section 4.1). "sequence" maps that one row. Unless given, the
            set's rows.
        on_step: called after every step that a flow is trained (see `Flow.fit`).

    Raises:
        ConfigError: there is no such set, or not at this level.
    """
    _check_set(model, on)
    pooled = model.sets[on].pooled
    if level == "sequence" and not pooled:
        raise ConfigError(f"{on!r} has many rows a text, so there is no sequence to map; leave the level out")
    tokens = _mean_head(model, on) if level == "token" and pooled else None
    before, encoder = model.steps(on), model.encoder
    if tokens is not None:
        before, encoder = [cast(Transform, found) for found in tokens.tokenwise], _tokens(model.encoder, on)
    steps = declare(model.sets[on].dim if tokens is None else tokens.dim)
    for place, step in enumerate(steps):
        rows = _rows(encoder, on, texts, [*before, *steps[:place]], torch.device("cpu"))
        if isinstance(step, Flow):
            step.fit(rows, on_step)
        else:
            step.fit(rows)
    for step in steps:
        if tokens is None:
            model.append(on, step)
        else:
            tokens.tokenwise.append(step)
    model.leave_out()
    return model if model.has_unit_length(on) else model.append(on, Normalise())


def recentre_behind(model: Model, on: str, texts: FitTexts) -> Model:
    """Let every map of a set that subtracts a mean subtract that of these texts; all else of it stays.

    A map that was fitted to one collection is made ready for another one. The model changes, in place.

    Args:
        model: with maps that are fitted, of tokens before their mean or of the set's rows.
        on: the vector set.
        texts: whose vectors, at each map what those before make of them.

    Raises:
        ConfigError: there is no such set, or no such map behind it.
    """
    _check_set(model, on)
    head = tokenwise_of(model.encoder, on)
    chains = [(model.encoder, model.steps(on))]
    if head is not None and head.tokenwise:
        chains.insert(0, (_tokens(model.encoder, on), [cast(Transform, step) for step in head.tokenwise]))
    found = [(*chain, at) for chain in chains for at, step in enumerate(chain[1]) if _centres(step)]
    if not found:
        raise ConfigError(f"no map behind {on!r} subtracts a mean; fit one first, as `fit whitening` does")
    for encoder, steps, at in found:
        rows = _rows(encoder, on, texts, steps[:at], torch.device("cpu"))
        cast(Whitening, steps[at]).recentre(rows)
    model.leave_out()
    return model


def _check_set(model: Model, on: str) -> None:
    if on not in model.sets:
        raise ConfigError(f"no vector set {on!r}; this model makes {', '.join(model.sets)}")


def _centres(step: Transform) -> bool:
    return isinstance(step, Whitening) and step.centre


def _mean_head(model: Model, on: str) -> Mean:
    """The head whose tokens can be mapped.

    Raises:
        ConfigError: saying why there is none.
    """
    head = tokenwise_of(model.encoder, on)
    if head is None:
        raise ConfigError(
            f"{on!r} has no tokens to map; that needs one encoder for both sides, a Mean head whose "
            "projection, if any, is linear, and no shared layer"
        )
    if not all(isinstance(step, Normalise) for step in model.steps(on)):
        raise ConfigError(
            f"the maps on {on!r} were fitted to means of tokens as they are now; map the tokens first"
        )
    return head


def linear_of(encoder: DualEncoder, on: str) -> Linear | None:
    """The projection of a set's head, if it is a plain linear one that both sides share."""
    projection = getattr(_heads(encoder.query)[on], "projection", None)
    plain = isinstance(projection, Linear) and projection.activation == "none" and not projection.residual
    return projection if plain and encoder.document is None else None


def tokenwise_of(encoder: DualEncoder, on: str) -> Mean | None:
    """The head of a set that is a mean of its tokens' vectors, whichever comes first: projection or mean."""
    head = _heads(encoder.query)[on]
    if not isinstance(head, Mean) or encoder.document is not None or on in encoder.shared:
        return None
    return head if head.projection is None or linear_of(encoder, on) is not None else None


def _steps(stage: Fit, model: Model) -> tuple[list[Transform], DualEncoder]:
    """What a stage fits, in order, and what makes the rows that the first is fitted to."""
    if stage.what == "projection":
        linear = linear_of(model.encoder, stage.on)
        if linear is None:
            raise ConfigError(
                f"{stage.name}: {stage.on!r} needs one encoder for both sides and a head with "
                "projection=Linear(...) alone, without activation or residual"
            )
        bare = _bare(model.encoder, stage.on)
        found: Transform = Whitening(bare.sets[stage.on], rank=linear.dim, power=0.0, centre=False)
        return [found], bare
    if stage.what == "tokenwise":
        head = tokenwise_of(model.encoder, stage.on)
        if head is None or not head.tokenwise:
            raise ConfigError(
                f"{stage.name}: {stage.on!r} needs one encoder for both sides and a head "
                "Mean(tokenwise=[...])"
            )
        return [cast(Transform, step) for step in head.tokenwise], _tokens(model.encoder, stage.on)
    if stage.on not in model.transforms:
        known = ", ".join(model.transforms) or "none"
        raise ConfigError(
            f"{stage.name}: the model has no transform on {stage.on!r}; it has them on: {known}"
        )
    return [cast(Transform, s) for s in cast(nn.ModuleList, model.transforms[stage.on])], model.encoder


@torch.no_grad()
def _into_projection(found: Whitening, linear: Linear) -> None:
    """Put the principal directions of what the projection is fed into it.

    Of all linear maps to so few components, the leading eigenvectors of the second moment (not centred,
    since scores are inner products) keep the rows' inner products best.
    """
    linear.linear_.weight.copy_(found.matrix_.T)
    if linear.bias:
        linear.linear_.bias.zero_()


def _bare(encoder: DualEncoder, on: str) -> DualEncoder:
    """What makes the rows that a set's projection is fed: of a routed one, every token's state once."""
    if isinstance(_heads(encoder.query)[on], Routed):
        return _alone(encoder.query, on, TokenVectors())
    said = _heads(encoder.query)[on].to_dict()
    head = Part.from_dict({name: said[name] for name in said.keys() - {"projection", "normalise"}})
    return _alone(encoder.query, on, cast(Head, head))


def _tokens(encoder: DualEncoder, on: str) -> DualEncoder:
    """What makes the rows of which a `Mean` head takes the mean."""
    return _alone(encoder.query, on, TokenVectors(projection=_heads(encoder.query)[on].projection))


def _alone(encoder: Encoder, on: str, head: Head) -> DualEncoder:
    return DualEncoder(Encoder(encoder.backbone, {on: head}, encoder.query, encoder.document))


def _heads(encoder: Encoder) -> dict[str, Head]:
    return {name: cast(Head, head) for name, head in encoder.heads.items()}


@torch.no_grad()
def _rows(
    encoder: DualEncoder, on: str, texts: FitTexts, before: Sequence[Transform], device: torch.device
) -> Iterator[torch.Tensor]:
    """The rows of a set for many texts, behind some maps, piece by piece."""
    done = 0
    for encode, some in ((encoder.encode_document, texts.documents), (encoder.encode_query, texts.queries)):
        for start in range(0, len(some), PIECE):
            part = some[start : start + PIECE]
            rows = torch.from_numpy(encode(part)[on].values).unsqueeze(0).to(device)
            vectors = Vectors(rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device))
            for step in before:
                vectors = step(vectors)
            done += len(part)
            texts.on_progress(done)
            yield vectors.values[0].cpu()

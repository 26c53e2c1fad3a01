"""Small parts that learn over the untrained default, and how they are trained and measured.

Before the first step they change nothing, so step 0 is the untrained model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
import torch
from benchmarks.default.scenes import NOTHING, Scene, weighed
from torch import Tensor, nn
from torch.nn import functional

from counterpoint.types import Ragged

BATCH, NEGATIVES = 32, 11
NEIGHBOURS = 64  # a batch's queries are drawn from so many of about one length
Rank = int | Literal["full", "diagonal"]
MATCHES = 1  # rows of a document that a word is compared with in training: the untrained model's best
SCALES = (5, 10, 15, 20, 30, 40, 60, 80)


@final
@dataclass(frozen=True)
class Way:
    """A way to train.

    Attributes:
        learns: the parts that learn: `importance` of the query's words, a `map` of these words, or a
            map of the query's pooled vector (`mean`).
        loss: `answers`: −ln softmax at a relevant candidate, among it and others. `teacher`: KL divergence
            from the untrained hybrid's softmax over the same. `sum`: of both.
        of: whose scores the loss takes.
        rate: AdamW's.
        strength: of the penalty, the sum of squares of a map's difference to identity, and the mean square
            of ln importance.
        rank: of the maps, or "diagonal": a factor for each component.
        hidden: units of the head of importance; 0 for a linear one.
        idf: √idf of a word is an input of this head.
        stops: steps at which it is measured.
    """

    learns: tuple[str, ...]
    loss: Literal["answers", "teacher", "sum"] = "answers"
    of: Literal["hybrid", "words"] = "hybrid"
    rate: float = 1e-3
    strength: float = 0.0
    rank: Rank = "full"
    hidden: int = 0
    idf: bool = False
    stops: tuple[int, ...] = (0, 50, 100, 200, 400)

    @property
    def name(self) -> str:
        """All that is not as by default."""
        plain = Way(self.learns)
        more = [f"{k}={v}" for k, v in vars(self).items() if k != "stops" and v != getattr(plain, k)]
        return " ".join(["+".join(self.learns), *more])


# -- what learns -----------------------------------------------------------------------------------------


@final
class Small(nn.Module):
    """The parts that learn; before the first step they change nothing."""

    def __init__(self, way: Way, dim: int, pooled: int):
        super().__init__()
        self.way = way
        inputs = dim + way.idf
        head = [nn.Linear(inputs, way.hidden), nn.GELU()] if way.hidden else []
        last = nn.Linear(way.hidden or inputs, 1)
        for weights in last.parameters():
            nn.init.zeros_(weights)
        self.head = nn.Sequential(*head, last) if "importance" in way.learns else None
        self.map = Residual(dim, way.rank) if "map" in way.learns else None
        self.mean = Residual(pooled, way.rank) if "mean" in way.learns else None

    def words(self, rows: Tensor) -> Tensor:
        """The query's words after their map, at unit length."""
        return rows if self.map is None else self.map(rows)

    def scale(self, words: Tensor, importance: Tensor) -> Tensor | None:
        """Factors of the words' importance, from their vectors before the map that learns."""
        if self.head is None:
            return None
        given = torch.cat([words, importance[..., None]], -1) if self.way.idf else words
        return self.head(given)[..., 0].exp()

    def pooled(self, rows: Tensor) -> Tensor:
        """The queries' pooled vectors after their map, at unit length."""
        return rows if self.mean is None else self.mean(rows)

    def changed(self, found: dict[str, Ragged]) -> dict[str, Ragged]:
        """The vectors of queries as an index is asked by them; idf is applied after."""
        with torch.inference_mode():
            rows = torch.from_numpy(found["words"].values)
            words, scale = self.words(rows), self.scale(rows, rows[:, 0])
            words = words if scale is None else words * scale[:, None]
            mean = self.pooled(torch.from_numpy(found["mean"].values))
        return {
            "mean": replace(found["mean"], values=mean.numpy()),
            "words": replace(found["words"], values=words.numpy()),
        }

    def penalty(self) -> Tensor:
        """The sum of squares of the maps' differences to identity."""
        maps = [each for each in (self.map, self.mean) if each is not None]
        return sum((each.matrix().square().sum() for each in maps), torch.zeros(()))


@final
class Residual(nn.Module):
    """x + x·A, at unit length; A is 0 at first, and perhaps diagonal or of low rank."""

    def __init__(self, dim: int, rank: Rank):
        super().__init__()
        low = isinstance(rank, int)
        self.left = nn.Parameter(torch.randn(dim, rank) / dim**0.5) if low else None
        self.right = nn.Parameter(torch.zeros(dim if rank == "diagonal" else (rank if low else dim, dim)))

    def matrix(self) -> Tensor:
        """A, or its diagonal."""
        return self.right if self.left is None else self.left @ self.right

    def forward(self, rows: Tensor) -> Tensor:
        """The rows after the map."""
        if self.right.dim() == 1:
            return functional.normalize(rows + rows * self.right, dim=-1)
        inner = rows if self.left is None else rows @ self.left
        return functional.normalize(rows + inner @ self.right, dim=-1)


# -- training --------------------------------------------------------------------------------------------


@final
class Columns:
    """The untrained parts' scores of all candidates of a scene, and the queries that can be learnt from.

    The queries are in the order of their number of words, so that neighbours are padded little.
    """

    def __init__(self, scene: Scene):
        every, groups = all_of(scene), by_length(scene)
        order = torch.cat(groups).argsort()
        with torch.inference_mode():
            similar = [scene.similar(some, every[some], scene.words[some]) for some in groups]
            mean = [scene.cosine(some, every[some], scene.mean[some]) for some in groups]
        self.similar, self.mean = (torch.cat(each)[order].clone() for each in (similar, mean))
        self.words = scene.summed(torch.arange(len(scene)), self.similar, None)
        self.hybrid = hybrid_of(scene, self.words, self.mean)
        relevant = scene.known & (scene.gains > 0)
        usable = relevant.any(1) & (scene.known & ~relevant).any(1)
        self.usable = torch.cat(groups)[usable[torch.cat(groups)]]


def all_of(scene: Scene) -> Tensor:
    """The number of every candidate of every query."""
    return torch.arange(scene.real.shape[1])[None].expand(len(scene), -1)


def hybrid_of(scene: Scene, words: Tensor, mean: Tensor) -> Tensor:
    """The hybrid's scores of all candidates of all queries, without feedback."""
    columns = {"lexical": scene.lexical, "mean": mean, "words": words}
    return weighed(scene, torch.arange(len(scene)), columns)


def by_length(scene: Scene, most: int = 64) -> list[Tensor]:
    """Groups of queries of about as many words."""
    return list((scene.importance > 0).sum(1).argsort(stable=True).split(most))


def scale_of(scenes: Mapping[str, Scene], columns: Mapping[str, Columns], of: str) -> float:
    """The scale of untrained scores with the smallest loss, which is no gain of training then."""
    losses = []
    for scale in SCALES:
        found = []
        for name, scene in scenes.items():
            own = columns[name]
            logits = (getattr(own, of) * scale).masked_fill(~scene.known, -torch.inf)[own.usable]
            relevant = (scene.known & (scene.gains > 0))[own.usable]
            right = logits.masked_fill(~relevant, -torch.inf).logsumexp(1)
            found.append((logits.logsumexp(1) - right).mean())
        losses.append(float(torch.stack(found).mean()))
    return float(SCALES[int(np.argmin(losses))])


def drawn_lists(scene: Scene, own: Columns, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Some queries (b,), a relevant candidate and others of each (b, n), and which of these are there."""
    first = int(torch.randint(max(1, len(own.usable) - NEIGHBOURS), (1,), generator=draw))
    window = min(NEIGHBOURS, len(own.usable))
    queries = own.usable[first + torch.randint(window, (BATCH,), generator=draw)]
    luck = torch.rand(BATCH, scene.known.shape[1], generator=draw)
    relevant = scene.known[queries] & (scene.gains[queries] > 0)
    others = scene.known[queries] & ~relevant
    right = luck.masked_fill(~relevant, -1).argmax(1, keepdim=True)
    found = luck.masked_fill(~others, -1).topk(min(NEGATIVES, luck.shape[1]), dim=1)
    there = torch.cat([torch.ones_like(right, dtype=torch.bool), found.values >= 0], 1)
    return queries, torch.cat([right, found.indices], 1), there


def loss_of(
    small: Small, scene: Scene, own: Columns, scale: Mapping[str, float], draw: torch.Generator
) -> Tensor:
    """The loss of a batch of one scene."""
    way = small.way
    queries, candidates, there = drawn_lists(scene, own, draw)
    at = queries[:, None], candidates
    words = scene.words[queries]
    factor = small.scale(words, scene.importance[queries])
    similar = own.similar[at]
    if small.map is not None:
        similar = scene.similar(queries, candidates, small.words(words), MATCHES)
    by_words = scene.summed(queries, similar, factor)
    by_mean = own.mean[at]
    if small.mean is not None:
        by_mean = scene.cosine(queries, candidates, small.pooled(scene.mean[queries]))
    columns = {"lexical": scene.lexical[at], "mean": by_mean, "words": by_words}
    scores = by_words if way.of == "words" else weighed(scene, queries, columns)
    logits = (scores * scale[way.of]).masked_fill(~there, NOTHING * 1e3).log_softmax(1)
    loss = torch.zeros(())
    if way.loss != "teacher":
        loss = loss - logits[:, 0].mean()
    if way.loss != "answers":
        taught = (own.hybrid[at] * scale["hybrid"]).masked_fill(~there, NOTHING * 1e3).log_softmax(1)
        loss = loss + (taught.exp() * (taught - logits)).sum(1).mean()
    if way.strength:
        spread = 0 if factor is None else factor.log()[scene.importance[queries] > 0].square().mean()
        loss = loss + way.strength * (small.penalty() + spread)
    return loss


def trained(
    way: Way, scenes: Mapping[str, Scene], columns: Mapping[str, Columns], seed: int, stops: Sequence[int]
) -> Iterator[tuple[int, "Small"]]:
    """Train, and yield the parts at each of the steps `stops`."""
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    one = next(iter(scenes.values()))
    small = Small(way, one.words.shape[2], one.mean.shape[1])
    scale = {of: scale_of(scenes, columns, of) for of in ("hybrid", "words")}
    optimiser = torch.optim.AdamW(small.parameters(), lr=way.rate, weight_decay=0.0)
    names = list(scenes)
    for step in range(max(stops) + 1):
        if step in stops:
            yield step, small
        name = names[int(torch.randint(len(names), (1,), generator=draw))]
        loss = loss_of(small, scenes[name], columns[name], scale, draw)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@torch.inference_mode()
def measured(small: Small, scene: Scene, own: Columns) -> dict[str, np.ndarray]:
    """nDCG@10 of every query by words alone, by the cosine, and by the hybrid with feedback."""
    every, groups = all_of(scene), by_length(scene)
    order, queries = torch.cat(groups).argsort(), torch.arange(len(scene))
    similar, mean = own.similar, own.mean
    if small.map is not None and small.map.right.any():
        found = [scene.similar(some, every[some], small.words(scene.words[some])) for some in groups]
        similar = torch.cat(found)[order]
    if small.mean is not None:
        pooled = small.pooled(scene.mean)
        mean = torch.cat([scene.cosine(some, every[some], pooled[some]) for some in groups])[order]
    words = scene.summed(queries, similar, small.scale(scene.words, scene.importance))
    return {
        "words": scene.values(words, scene.real),
        "cosine": scene.values(mean, scene.real),
        "hybrid": scene.values(scene.fed(hybrid_of(scene, words, mean)), scene.known),
    }

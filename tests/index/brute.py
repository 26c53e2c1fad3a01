"""What an index must answer, by loops over its documents: no segment, no position, no posting.

Formulas are those of the documentation (docs/search.md, and the papers named there), in double precision, so
numbers agree to a tolerance and not to the last bit. Where a choice hangs on less than that (two documents
that score alike, the last of the candidates), nothing can be said: `Unclear` is raised.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from counterpoint.search import SearchSettings
from counterpoint.types import Document

K1, B, RRF = 0.9, 0.4, 60
EPSILON = 1e-4
"""Below that, a difference between two scores may be one of rounding."""


class Unclear(Exception):
    """What is right hangs on rounding."""


class Refused(Exception):
    """A change that must be refused."""


@dataclass(frozen=True)
class Found:
    """A document with its score and what that is the sum of.

    `leaves`: by part what its words or rows add: label or piece of the query, idf, and score.
    """

    score: float
    parts: Mapping[str, float]
    leaves: Mapping[str, list]


LARGEST = {"int8": 127, "int4": 7}


@dataclass(frozen=True)
class Part:
    """A vector set.

    `codec`: float32, float16, int8, int4, `static` (the model's own table), or `kept` (what the index says
    that it has stored: `Brute.stored`). `exact`: it has postings; `listed`: lists of centroids.
    """

    codec: str
    pooled: bool = False
    exact: bool = False
    listed: bool = False

    @property
    def whole(self) -> bool:
        """Whether equal texts score alike to the last bit, whatever lies next to them."""
        return self.codec == "int8"

    @property
    def slack(self) -> float:
        """Below that, a difference between two scores may be one of rounding."""
        return 0.05 if self.codec == "kept" else EPSILON


class Brute:
    """Documents by id, in the order in which they came.

    Args:
        model: encodes.
        parts: vector sets, in the model's order.
    """

    def __init__(self, model, parts: Mapping[str, Part]):
        self.model, self.parts = model, dict(parts)
        self.rows: dict[str, Document] = {}
        self.stored: dict[tuple[str, str], np.ndarray] = {}
        self._kept: set[int] = set()
        self._encoded: dict[str, Mapping] = {}

    def copy(self) -> "Brute":
        """What does not change with this one."""
        other = Brute(self.model, self.parts)
        other.rows, other.stored, other._kept = dict(self.rows), dict(self.stored), self._kept
        other._encoded = self._encoded
        return other

    def keep(self, stored: Mapping[tuple[str, str], np.ndarray]) -> None:
        """Remember what the index says that it has stored of the documents that are there."""
        self.stored = dict(stored)
        self._kept = {id(row) for row in self.rows.values()}

    def was(self, row: Document) -> bool:
        """Whether this very document was there when that was remembered, and not another of its id."""
        return id(row) in self._kept

    # -- changes ---------------------------------------------------------------------------------------

    def wholes(self) -> set[str]:
        """Ids of documents, those that were cut among them."""
        return {row.parent or row.id for row in self.rows.values()}

    def of(self, name: str) -> list[str]:
        """The rows of a document."""
        return [row.id for row in self.rows.values() if (row.parent or row.id) == name]

    def add(self, documents, replace=False):
        wholes = dict.fromkeys(each.parent or each.id for each in documents)
        kept = {n: row for n, row in self.rows.items() if not (replace and (row.parent or n) in wholes)}
        there = {row.parent or row.id for row in kept.values()} | kept.keys()
        ids = [each.id for each in documents]
        if there & {*wholes, *ids} or len(set(ids)) < len(ids):
            raise Refused
        self.rows = kept | {each.id: each for each in documents}

    def delete(self, ids, missing_ok=False):
        ids, wholes = list(dict.fromkeys(ids)), self.wholes()
        passages = [name for name in ids if name in self.rows and name not in wholes]
        if passages or (not missing_ok and not set(ids) <= wholes):
            raise Refused
        gone = {row for name in ids for row in self.of(name)}
        self.rows = {name: row for name, row in self.rows.items() if name not in gone}
        return len(set(ids) & wholes)

    def delete_where(self, holds: Callable):
        gone = {row.parent or name for name, row in self.rows.items() if holds(row.metadata)}
        self.rows = {name: row for name, row in self.rows.items() if (row.parent or name) not in gone}
        return len(gone)

    # -- statistics ------------------------------------------------------------------------------------

    def terms(self, row: Document) -> list[str]:
        return row.full_text.lower().split()

    def bm25(self, query: str) -> tuple[dict[str, list], np.ndarray, np.ndarray]:
        """By row the terms that it has with what each adds; and df and idf of the query's terms."""
        texts = {name: self.terms(row) for name, row in self.rows.items()}
        average = sum(map(len, texts.values())) / max(len(texts), 1) or 1.0
        asked = query.lower().split()
        df = np.array([sum(term in text for text in texts.values()) for term in asked], float)
        idf = self.idf(df)
        found = {}
        for name, text in texts.items():
            norm = K1 * (1 - B + B * len(text) / average)
            found[name] = [
                (term, float(weight * text.count(term) / (text.count(term) + norm)))
                for term, weight, count in zip(asked, idf, df, strict=True)
                if count
            ]
        return found, df, idf

    def idf(self, df):
        return np.log(1 + (len(self.rows) - df + 0.5) / (df + 0.5))

    def frequency(self, part: str, number: int) -> int:
        return sum(number in self.encoded(part, row.full_text)[1] for row in self.rows.values())

    def encoded(self, part: str, text: str):
        """Vectors and ids of a text, as the model gives them."""
        if text not in self._encoded:
            self._encoded[text] = self.model.encode_document([text])
        found = self._encoded[text][part]
        return found[0].astype(np.float32), None if found.ids is None else found.ids_of(0)

    def vectors(self, part: str, row: Document):
        """Those of a document, as they are stored."""
        values, ids = self.encoded(part, row.full_text)
        codec = self.parts[part].codec
        if codec == "float16":
            values = values.astype(np.float16)
        elif codec in LARGEST:
            scales = (np.abs(values).max(axis=1, initial=0.0) / LARGEST[codec])[:, None]
            up = scales.astype(np.float16)
            up = np.where(up < scales, np.nextafter(up, np.float16(np.inf)), up).astype(np.float64)
            values = np.rint(values / np.where(up > 0, up, 1)) * up
        elif codec == "kept":
            values = self.stored[part, row.id]
        elif codec == "static":  # a document has an id once
            ids, first = np.unique(ids, return_index=True)
            values = values[first]
        return values.astype(np.float64), ids

    # -- searches --------------------------------------------------------------------------------------

    def plan(self, workflow: str) -> tuple[list[str], list[str]]:
        """The parts that propose, and those that score."""
        pooled = [name for name, part in self.parts.items() if part.pooled]
        several = [name for name, part in self.parts.items() if not part.pooled]
        static = any(part.codec == "static" for part in self.parts.values())
        cheap = [name for name in several if self.parts[name].exact or self.parts[name].listed]
        return {
            "hybrid": (["lexical", *pooled, *(several if static else cheap)], ["lexical", *pooled, *several]),
            "lexical": (["lexical"], ["lexical"]),
            "dense": (pooled, pooled),
            "words": (several, several),
            "dense-words": (pooled, [*pooled, *several]),
            "words-dense": (several, [*pooled, *several]),
        }[workflow]

    def search(
        self, query: str, workflow: str, settings: SearchSettings, depth: int, holds=None, asked=None
    ) -> dict[str, Found]:
        """By row what it scores, of all candidates.

        Args:
            query: not blank.
            workflow: its name.
            settings: of the search.
            depth: how many documents each part proposes.
            holds: whether a document may be found, by its metadata.
            asked: rows to be scored in place of the candidates.
        """
        first, names = self.plan(workflow)
        weights = {name: settings.weights[name] for name in names if settings.weights.get(name)}
        if len(names) == 1:
            weights = {names[0]: 1.0}
        elif settings.scale == "ceiling":
            weights = {name: weight / sum(weights.values()) for name, weight in weights.items()}
        first = [name for name in first if name in weights] or first
        fed = [name for name in self.parts if self.parts[name].pooled]
        fed = fed if settings.feedback and workflow == "hybrid" else []
        may = [name for name, row in self.rows.items() if holds is None or holds(row.metadata)]
        scores, leaves, ceilings = {}, {}, {}
        for name in dict.fromkeys([*first, *weights]):
            scores[name], leaves[name], ceilings[name] = self._scores(name, query, settings)
        if settings.scale == "none" or len(weights) + len(fed) == 1:
            ceilings = dict.fromkeys(ceilings, 1.0)
        pool = self._proposed(first, scores, may, settings.candidates)
        found = pool | self._proposed(first, scores, may, depth) if depth > settings.candidates else pool
        if len(first) > 1 and set(first) < set(weights) and settings.adapts and not settings.exhaustive:
            shares = {name: ceilings[name] for name in first}
            found = self._refined(found, scores, shares, max(settings.refined, 2 * depth))
        adapt = (
            {n: settings.adapt[n] for n in weights if n in settings.adapt} if settings.follows_query else {}
        )
        if adapt and len(weights) > 1:
            known = {name: pool if name in first else pool & found for name in weights}
            weights = self._adapted(query, weights, adapt, scores, (pool, known))
        chosen = [name for name in self.rows if name in found]
        if asked is not None:
            chosen = [name for name in asked if name in may]
        table = {name: np.array([scores[name][r] / ceilings[name] for r in chosen]) for name in weights}
        method, normalise = settings.method, settings.normalise
        if len(weights) + len(fed) == 1:
            method, normalise = "convex", "none"
        parts = {n: w * comparable(table[n], method, normalise) for n, w in weights.items()}
        factors = {n: slope(table[n], parts[n], w, method, normalise) for n, w in weights.items()}
        if fed and chosen:
            parts, extra = self._fed(chosen, parts, fed, settings, sum(map(abs, weights.values())))
        results = {}
        for at, row in enumerate(chosen):
            mine = {name: float(values[at]) for name, values in parts.items()}
            shrunk = 1 / (1 + settings.feedback) if fed and settings.scale == "ceiling" else 1.0
            told = {
                n: [
                    (label, idf, raw * factors[n] / ceilings[n] * shrunk)
                    for label, idf, raw in leaves[n][row]
                ]
                for n in weights
            }
            if fed and chosen:
                told["feedback"] = extra[at]
            results[row] = Found(sum(mine.values()), mine, told)
        return results

    def run(self, query, workflow, settings, k, holds=None, asked=None) -> dict[str, float]:
        """By document its best passage's score, of all candidates."""
        depth = 4 * k if any(row.parent for row in self.rows.values()) else k
        rows = None if asked is None else [row for name in asked for row in self.of(name)]
        best: dict[str, float] = {}
        for name, found in self.search(query, workflow, settings, depth, holds, rows).items():
            whole = self.rows[name].parent or name
            best[whole] = max(found.score, best.get(whole, -math.inf))
        return best

    # -- steps -----------------------------------------------------------------------------------------

    def _scores(self, name, query, settings):
        """By row its score by a part and the leaves of that; and the ceiling."""
        if name == "lexical":
            found, _, idf = self.bm25(query)
            leaves = {row: [(term, None, score) for term, score in terms] for row, terms in found.items()}
            scores = {row: sum(score for _, score in terms) for row, terms in found.items()}
            return scores, leaves, idf.sum() or 1.0
        encoded = self.model.encode_query([query])[name]
        values, ids = encoded[0].astype(np.float32), None if encoded.ids is None else encoded.ids_of(0)
        power, idf = settings.idf.get(name), [None] * len(values)
        if power:
            df = np.array([self.frequency(name, number) for number in ids], float)
            idf = (self.idf(df).astype(np.float32) ** power).tolist()
            values = values * np.array(idf, np.float32)[:, None]
        ceiling = float(np.linalg.norm(values.astype(np.float64), axis=1).sum()) or 1.0
        part = self.parts[name]
        asked = rounded(values) if part.codec == "int8" else values.astype(np.float64)
        exact, floor = name in settings.exact, name in settings.exact or name in settings.floor
        words = [None] if part.pooled else [span.text for span in self.model.spans([query], name, "query")[0]]
        scores, leaves = {}, {}
        for row, document in self.rows.items():
            stored, own = self.vectors(name, document)
            products = asked @ stored.T
            if exact:
                products = np.where(ids[:, None] == own, products, 0)
            best = products.max(axis=1) if len(stored) else np.zeros(len(asked))
            best = np.maximum(best, 0) if floor else best
            leaves[row] = list(zip(words, idf, best.tolist(), strict=True))
            scores[row] = float(best.sum())
        return scores, leaves, ceiling

    def _proposed(self, first, scores, may, k) -> set[str]:
        return {row for name in first for row in self._best(name, scores[name], may, k)}

    def _refined(self, found, scores, ceilings, limit) -> set[str]:
        """The best by the sum of what the proposing parts score, of equal ones the first."""
        total = {row: sum(scores[n][row] / most for n, most in ceilings.items()) for row in found}
        order = sorted((row for row in self.rows if row in found), key=lambda row: -total[row])
        if len(order) > limit:
            last, next_one = total[order[limit - 1]], total[order[limit]]
            whole = all(name == "lexical" or self.parts[name].whole for name in ceilings)
            slack = sum(self._slack(name) / most for name, most in ceilings.items())
            if last - next_one < slack and not (whole and last == next_one):
                raise Unclear
        return set(order[:limit])

    def _best(self, name, scores, may, k):
        """The best rows by one part, of equal ones the first; none without a word that matches."""
        matching = name == "lexical" or self.parts[name].exact
        rows = [row for row in may if scores[row] > 0 or not matching]
        order = sorted(rows, key=lambda row: -scores[row])
        if len(order) > k:
            last, next_one = scores[order[k - 1]], scores[order[k]]
            alike = last == next_one and (name == "lexical" or self.parts[name].whole)
            if last - next_one < self._slack(name) and not alike:
                raise Unclear
        return order[:k]

    def _slack(self, name):
        return EPSILON if name == "lexical" else self.parts[name].slack

    def _adapted(self, query, weights, adapt, scores, pools):
        factors, (pool, known) = {}, pools
        for name in weights:
            found = [scores[name][row] for row in known[name]]
            if found and 0 < max(found) - min(found) < self._slack(name):
                raise Unclear
            if len(set(found)) == 1 and name != "lexical" and not self.parts[name].whole and len(found) > 1:
                raise Unclear  # alike but for rounding
            has = 1.0
            if name == "lexical":
                _, df, idf = self.bm25(query)
                has = float(idf[df > 0].sum() / idf.sum()) if len(idf) else 0.0
            elif not self.parts[name].pooled and pool:
                has = float(np.mean([len(self.vectors(name, self.rows[row])[0]) for row in pool]))
            if not found or min(found) == max(found) or not has:
                factors[name] = 0.0
            elif name not in adapt:
                factors[name] = 1.0
            else:
                how = adapt[name]
                factors[name] = has**how if name == "lexical" else min(1.0, has / how) ** 2
        changed = {name: weight * factors[name] for name, weight in weights.items()}
        sets = [name for name in weights if name != "lexical"]
        before, after = (sum(each[name] for name in sets) for each in (weights, changed))
        for name in sets:
            changed[name] = before * changed[name] / after if after else 0.0
        whole = sum(changed.values())
        return {name: each / whole for name, each in changed.items()} if whole else weights

    def _fed(self, chosen, parts, fed, settings, whole):
        """The parts with feedback, and what each document fed back adds."""
        scores = sum(parts.values())
        order = sorted(range(len(chosen)), key=lambda at: -scores[at])
        owners, kept = set(), []
        for at in order:
            owner = self.rows[chosen[at]].parent or chosen[at]
            if owner not in owners:
                owners.add(owner)
                kept.append(at)
        kept = kept[: settings.feedback_documents + 1]
        best = kept[: settings.feedback_documents]
        above = np.array([scores[at] - scores[kept[-1]] for at in best])
        if above.sum() < 0.02:
            raise Unclear
        gaps = np.diff([scores[at] for at in order[: len(order)]])
        if (np.abs(gaps) < EPSILON).any():
            raise Unclear  # another of two that are alike may be fed back
        share = above / above.sum()
        units = {name: [unit(self.vectors(name, self.rows[row])[0][0]) for row in chosen] for name in fed}
        near = np.array([
            [sum(units[n][at] @ units[n][b] for n in fed) / len(fed) for b in best]
            for at in range(len(chosen))
        ])  # fmt: skip
        weight = settings.feedback * whole
        shrunk = 1 / (1 + settings.feedback)
        added = weight * (near @ share)
        labels = [f"(like {chosen[b]})" for b in best]
        leaves = [
            [(label, None, float(v)) for label, v in zip(labels, weight * share * row * shrunk, strict=True)]
            for row in near
        ]
        parts = {name: values * shrunk for name, values in parts.items()}
        return {**parts, "feedback": added * shrunk}, leaves


def rounded(rows):
    """A query's rows in 8 bits, each by a scale of its own."""
    scales = (np.abs(rows).max(axis=1, initial=0.0) / 127).astype(np.float32)[:, None]
    steps = np.where(scales > 0, scales, np.float32(1))
    return np.rint(rows / steps).astype(np.float64) * scales


def unit(row):
    return row / max(np.linalg.norm(row), 1e-12)


def comparable(scores, method, normalise):
    """One part's scores as they are added up."""
    if method == "rrf":
        ranked = np.sort(scores)
        if ((np.diff(ranked) > 0) & (np.diff(ranked) < EPSILON)).any():
            raise Unclear
        return np.array([1 / (RRF + 1 + (scores > score).sum()) for score in scores])
    if normalise == "none" or not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if 0 < high - low < 0.02:
        raise Unclear
    if low == high:
        return np.zeros(len(scores))
    if normalise == "min-max":
        return (scores - low) / (high - low)
    return (scores - scores.mean()) / scores.std()


def slope(scores, parts, weight, method, normalise):
    """How much a part's contribution grows with its score."""
    if method == "rrf":
        return 0.0
    if normalise == "none":
        return weight
    spread = np.ptp(scores) if len(scores) else 0.0
    return float(np.ptp(parts) / spread) if spread else 0.0


def ranked(scores: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """In trec_eval's order: by score in single precision, equal ones by falling id."""
    order = sorted(scores, reverse=True)
    order.sort(key=lambda name: -np.float32(scores[name]))
    return [(name, scores[name]) for name in order[:k]]


__all__ = ["Brute", "Found", "Part", "Refused", "Unclear", "ranked"]

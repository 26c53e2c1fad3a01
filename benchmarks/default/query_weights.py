"""Weights that follow the query, chosen on training collections by leaving one out (docs/design.md).

    python -m benchmarks.default.query_weights DATA --work FOLDER [--maps MAPS] [--json FILE]

DATA holds the eight choosing collections in BEIR layout. Of each, up to 1,000 queries are drawn and searched;
the scores of their candidates are kept, so that each way to weigh them takes milliseconds. Four families of
ways are compared: fixed shares; shares times a power of each part's best score; vectors' shares by a power of
their best scores and BM25's by what the collection has of the query; and `adapt`, where the words' share
follows the length of the candidates. Printed are, for each family, what the rule chooses on all collections,
and what it makes of each collection when it is chosen on the seven others; then, searched as a user would,
the choice with and without feedback next to its halves.

With `--maps`, FOLDER/NAME.safetensors is the map of a collection's words that was not fitted on it
(`benchmarks.default.fit --leave-out`). Indexes in `--work` are used again.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.common import parser_of
from benchmarks.default.maps import add_maps, check_maps, take_map

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.measure import all_shares, evaluate
from counterpoint.measure.significance import bootstrap_interval
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.settings import parse_weights

PARTS = ("lexical", "mean", "words")
SPLITS = {name: ("train", "dev", "test") for name in ("conala", "nl2bash", "perspectrum", "mqp")}
SPLITS |= {name: ("train",) for name in ("scifact", "squad11-dev", "nq-qed", "medquad")}
TOLERANCE = 0.003  # nDCG@10 that a choice may be below the better of its halves
DOCUMENTS, QUERIES, DEPTH = 20_000, 1_000, 100
DISCOUNTS = 1 / np.log2(np.arange(10) + 2)
HALVES = {
    "BM25": (1, 0, 0),
    "cosine": (0, 1, 0),
    "whole words": (0, 0, 1),
    "cosine and whole words": (0, 0.25, 0.75),
}
FEEDBACK = {"feedback": 0.1, "feedback_documents": 5}

LEVEL = 0.0005  # choices that differ by less are level, and the one that departs least is taken


@dataclass
class Scores:
    """What was found for a collection's queries, padded to one number of candidates.

    Attributes:
        table: (q, c, parts), over ceilings.
        evidence: (q, parts), what each part has to go by.
        gains: (q, c), grades; 0 for a candidate that is not relevant.
        ideal: (q,), the best DCG@10 that there is.
        alone: (q, parts), nDCG@10 of each part over all documents.
    """

    table: np.ndarray
    evidence: np.ndarray
    gains: np.ndarray
    ideal: np.ndarray
    alone: np.ndarray

    def values(self, weights: np.ndarray) -> np.ndarray:
        """nDCG@10 of every query by its weights (q, parts)."""
        scores = np.einsum("qcp,qp->qc", self.table, weights.astype(np.float32))
        best = np.argpartition(-scores, 9, axis=1)[:, :10]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        return np.take_along_axis(self.gains, np.take_along_axis(best, order, 1), 1) @ DISCOUNTS / self.ideal

    @property
    def best(self) -> np.ndarray:
        """The best score of each part for each query."""
        return np.maximum(self.table.max(axis=1), 0)

    def half(self, name: str) -> np.ndarray:
        """nDCG@10 of every query by one of the halves."""
        shares = HALVES[name]
        if max(shares) == 1:
            return self.alone[:, shares.index(1)]
        return self.values(np.tile(shares, (len(self.ideal), 1)))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder of the indexes; used again if there")
    add_maps(parser)
    parser.add_argument(
        "--collections", nargs="+", default=list(SPLITS), choices=list(SPLITS), metavar="NAME"
    )
    parser.add_argument("--json", type=Path, help="save every figure")
    options = parser.parse_args()
    if missing := [name for name in options.collections if not (options.data / name).is_dir()]:
        sys.exit(f"{options.data}: there is no {missing[0]}")
    if options.json and not options.json.parent.is_dir():
        sys.exit(f"--json {options.json}: there is no such folder")
    check_maps(options.maps)
    found = {name: scored(name, options) for name in options.collections}
    better = {name: max(each.half(half).mean() for half in HALVES) for name, each in found.items()}
    print(heads(found), line("the better half", better.values()), sep="\n")
    for half in HALVES:
        print(line(half, [each.half(half).mean() for each in found.values()]))
    figures = {"better half": better, "families": {}, "searched": {}}
    for family, ways in FAMILIES.items():
        figures["families"][family] = compared(family, dict(ways()), found, np.array(list(better.values())))
    chosen = figures["families"]["adapt"]["chosen"]
    for name in found:
        figures["searched"][name] = searched(name, options, chosen)
    show_searched(figures["searched"], chosen)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


# -- what is found ---------------------------------------------------------------------------------------


def prepared(name: str, options: argparse.Namespace):
    """A collection's index, model, drawn queries and judgements; the index is built if it is not there."""
    collection, model = open_collection(options.data / name), load_model("minilm")
    take_map(options.maps, name, model)
    texts, grades = {}, {}
    for split in SPLITS[name]:
        texts |= collection.queries(split)
        grades |= collection.qrels(split)
    drawn = random.Random(1).sample(sorted(grades), min(QUERIES, len(grades)))
    queries, qrels = {each: texts[each] for each in drawn}, {each: grades[each] for each in drawn}
    folder = options.work / name
    if not (folder / "manifest.json").is_file():
        ids = sorted(document.id for document in collection.documents())
        judged = {document for each in qrels.values() for document in each}
        others = [each for each in ids if each not in judged]
        free = max(0, min(len(others), DOCUMENTS - (len(ids) - len(others))))
        kept = set(ids) & judged | set(random.Random(1).sample(others, free))
        print(f"{name}: indexing {len(kept):,} documents", file=sys.stderr, flush=True)
        documents = (document for document in collection.documents() if document.id in kept)
        build_index(documents, model, folder, model.index_settings("minilm"))
    return folder, model, queries, qrels


def scored(name: str, options: argparse.Namespace) -> Scores:
    """The parts' scores of every candidate of every drawn query."""
    folder, model, queries, qrels = prepared(name, options)
    print(f"{name}: searching for {len(queries)} queries", file=sys.stderr, flush=True)
    with Index(folder) as index:
        settings = replace(
            SearchSettings.for_index(index), weights=dict.fromkeys(PARTS, 1.0), adapt={}, feedback=0.0
        )
        searcher = Searcher(index, model, settings)
        each = list(searcher.candidates(queries, DEPTH))
        alone = [searcher.run(queries, 10, workflow=workflow) for workflow in ("lexical", "dense", "words")]
        names = [[index.name_of(int(position)) for position in found.positions] for _, found in each]
    width = max(10, *(len(some) for some in names))
    table = np.full((len(each), width, len(PARTS)), -9, np.float32)
    gains = np.zeros((len(each), width), np.float32)
    for row, (query, candidates) in enumerate(each):
        table[row, : len(names[row])] = candidates.table
        gains[row, : len(names[row])] = [max(0, qrels[query].get(document, 0)) for document in names[row]]
    ideal = [sorted((max(0, grade) for grade in qrels[query].values()), reverse=True) for query in queries]
    return Scores(
        table,
        np.array([[candidates.evidence[part] for part in PARTS] for _, candidates in each]),
        gains,
        np.array([np.array(grades[:10]) @ DISCOUNTS[: len(grades)] for grades in ideal]),
        np.array([[values[query] for query in queries] for values in map(by_query(qrels), alone)]).T,
    )


def by_query(qrels) -> Callable[[Run], Mapping[str, float]]:
    """A function from a run to nDCG@10 of each query."""
    return lambda run: evaluate(run, qrels, ["nDCG@10"]).per_query["nDCG@10"]


# -- the families ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way to weigh parts.

    Attributes:
        weights: from what was found for a collection's queries to their weights (q, parts).
        departs: how many vectors a document must have for the words to have their full weight; 0 for others.
    """

    weights: Callable[[Scores], np.ndarray]
    departs: float = 0.0


def fixed() -> Iterator[tuple[str, Way]]:
    """Every way to give each part a share, in twentieths."""
    for shares in all_shares(3, 20, least=1):
        yield named(shares), Way(lambda found, s=shares: np.tile(s, (len(found.ideal), 1)))


def powers() -> Iterator[tuple[str, Way]]:
    """Shares in tenths, each times a power of the best score of its part."""
    for shares, power in product(all_shares(3, 10, least=1), (1, 2, 3, 4)):
        yield (
            f"{named(shares)}, power {power}",
            Way(lambda found, s=shares, p=power: np.array(s) * found.best**p),
        )


LEXICAL_SHARES, WORD_SHARES, KNOWN = (0.15, 0.2, 0.25, 0.3), (0.6, 0.65, 0.7, 0.75, 0.8), (0, 1, 2, 3)


def ratio() -> Iterator[tuple[str, Way]]:
    """The vectors' shares times a power of their best scores, BM25's times one of what is known."""
    for lexical, words, power, known in product(LEXICAL_SHARES, WORD_SHARES, (2, 4, 6, 8, 10, 12), KNOWN):
        shares = split(lexical, words)
        yield (
            f"{named(shares)}, powers {known} and {power}",
            Way(
                lambda found, s=shares, k=known, p=power: shared(
                    s[0] * found.evidence[:, :1] ** k, np.array(s[1:]) * found.best[:, 1:] ** p, 1 - s[0]
                )
            ),
        )


def length() -> Iterator[tuple[str, Way]]:
    """`adapt`: the words' share by the length of the candidates, BM25's times a power of what is known."""
    for lexical, words, full, known in product(LEXICAL_SHARES, WORD_SHARES, (20, 25, 30, 40, 60), KNOWN):
        shares = split(lexical, words)
        yield (
            f"{named(shares)}, adapt lexical={known} words={full}",
            Way(lambda found, s=shares, k=known, f=full: adapted_all(found.evidence, s, k, f), full),
        )


def split(lexical: float, words: float) -> tuple[float, float, float]:
    """BM25's share, and the words' share of the rest."""
    return lexical, (1 - lexical) * (1 - words), (1 - lexical) * words


def adapted_all(evidence: np.ndarray, shares: tuple[float, ...], known: float, full: float) -> np.ndarray:
    """`counterpoint.search.adapt.adapted` for all queries at once."""
    has = evidence > 0
    lexical = shares[0] * has[:, :1] * evidence[:, :1] ** known
    words = np.minimum(1, evidence[:, 2:] / full) ** 2
    return shared(lexical, np.array(shares[1:]) * np.concatenate([has[:, 1:2], words], axis=1), 1 - shares[0])


def shared(lexical: np.ndarray, vectors: np.ndarray, together: float) -> np.ndarray:
    """Weights of BM25, and of the vectors made to sum to what they have together."""
    sums = vectors.sum(axis=1, keepdims=True)
    scaled = np.divide(vectors * together, sums, out=np.zeros_like(vectors, float), where=sums > 0)
    return np.concatenate([lexical, scaled], axis=1)


def named(shares: tuple[float, ...]) -> str:
    return " ".join(f"{part}={share:.4g}" for part, share in zip(PARTS, shares, strict=True))


FAMILIES = {"fixed": fixed, "powers": powers, "ratio": ratio, "adapt": length}


# -- the rule --------------------------------------------------------------------------------------------


def compared(family: str, ways: dict[str, Way], found: dict[str, Scores], better: np.ndarray) -> dict:
    """What the rule chooses of a family, and what of each collection when it is left out."""
    each = {
        name: [scores.values(way.weights(scores)) for scores in found.values()] for name, way in ways.items()
    }
    means = np.array([[values.mean() for values in row] for row in each.values()])
    names, departs = list(each), [way.departs for way in ways.values()]

    def choice(at: list[int]) -> int:
        short = np.minimum(0, means[:, at] - better[at] + TOLERANCE).sum(axis=1)
        value = means[:, at].mean(axis=1) + short
        level = np.flatnonzero(value >= value.max() - LEVEL)
        return int(min(level, key=lambda way: (departs[way], -value[way])))

    every = list(range(len(found)))
    chosen = choice(every)
    left = [choice([other for other in every if other != at]) for at in every]
    out = np.array([means[way, at] for at, way in enumerate(left)])
    print(f"\n{family}: {names[chosen]}", line("chosen on all", means[chosen]), sep="\n")
    print(line("each left out", out), line("- the better half", out - better), sep="\n")
    ends = [
        interval(each[names[way]][at], scores)
        for at, (way, scores) in enumerate(zip(left, found.values(), strict=True))
    ]
    print(
        line("95 % interval from", [low for low, _ in ends]), line("to", [high for _, high in ends]), sep="\n"
    )
    short = float(np.minimum(0, out - better + TOLERANCE).sum())
    print(
        f"left out: mean {out.mean():.4f}, shortfalls {short:.4f}, together {out.mean() + short:.4f}",
        flush=True,
    )
    return {
        "chosen": names[chosen],
        "on all": dict(zip(found, means[chosen].tolist(), strict=True)),
        "left out": dict(zip(found, out.tolist(), strict=True)),
        "intervals": dict(zip(found, ends, strict=True)),
        "chosen without": {name: names[way] for name, way in zip(found, left, strict=True)},
    }


def interval(values: np.ndarray, scores: Scores) -> tuple[float, float]:
    """95 % interval of the difference to the better half."""
    half = max((scores.half(name) for name in HALVES), key=np.mean)
    low, high = bootstrap_interval(values - half)
    return float(low), float(high)


# -- as a user searches ----------------------------------------------------------------------------------


def searched(name: str, options: argparse.Namespace, chosen: str) -> dict[str, float]:
    """nDCG@10 by `Searcher` of the choice, with and without feedback and BM25, and of the earlier weights."""
    folder, model, queries, qrels = prepared(name, options)
    settings = {
        "chosen": settings_of(chosen),
        "before": {"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}},
    }
    found = {}
    with Index(folder) as index:
        own = replace(SearchSettings.for_index(index), adapt={}, feedback=0.0)
        for label, each in settings.items():
            plain = replace(own, **each)
            pair = [plain, replace(plain, **FEEDBACK)]
            runs = Searcher(index, model, plain).run_each(queries, DEPTH, pair)
            for run, kind in zip(runs, (", no feedback", ""), strict=True):
                found[label + kind] = evaluate(run, qrels, ["nDCG@10"]).measures["nDCG@10"]
        vectors = {
            part: weight for part, weight in settings["chosen"]["weights"].items() if part != "lexical"
        }
        without = replace(own, **{**settings["chosen"], "weights": vectors, **FEEDBACK})
        run = Searcher(index, model, without).run(queries, DEPTH)
        found["chosen, no BM25"] = evaluate(run, qrels, ["nDCG@10"]).measures["nDCG@10"]
    return found


def settings_of(way: str) -> dict:
    """What a way of the family `adapt` is called, as search settings."""
    shares, _, adapt = way.partition(", adapt ")
    return {"weights": parse_weights(shares), "adapt": parse_weights(adapt)}


def show_searched(found: dict[str, dict[str, float]], chosen: str) -> None:
    print(f"\nsearched, {chosen}")
    for label in next(iter(found.values())):
        print(line(label, [values[label] for values in found.values()]))


def heads(names) -> str:
    return "".ljust(24) + "    mean" + "".join(f" {name[:11]:>11}" for name in names)


def line(label: str, values) -> str:
    values = list(values)
    return f"{label.ljust(24)} {np.mean(values):7.4f}" + "".join(f" {value:11.4f}" for value in values)


if __name__ == "__main__":
    main()

"""The weights of the default model's parts, chosen on training queries alone.

    python -m benchmarks.default.weights DATA/nq-qed DATA/squad11-dev DATA/scifact DATA/medquad --work FOLDER

Of each collection, queries of the split `train` are drawn and searched in its documents by the hybrid, with
every way to give the parts shares that are multiples of a step, none without any. The way with the best
nDCG@10 in the mean over the collections is chosen; of equals, the first. Where BM25 is among the parts, it
stands below alone, and the vectors alone, shared among them in the best way of the same steps for each
collection; `worst` is how far a way is above or below the better of the two where it is worst. All this is
without feedback. Below it, the model's own shares, or those of `--at`, have feedback of several weights and
numbers of documents, the best in the mean first.

The vectors alone are chosen by the same rule: with `--parts mean words` they get shares, and with
`--parts mean words --at "mean=… words=…"` their feedback at these.

With `--maps FOLDER` the words of a collection have FOLDER/NAME.safetensors for their map, if it is there: one
that was not fitted on its documents, as `benchmarks.default.fit --leave-out FOLDER` writes them.

These four are the collections whose training queries are questions or claims. MiniLM was trained on two of
them (Natural Questions and SQuAD), where vectors look better than they are on new collections, and not on
the other two, so neither kind decides alone.
"""

import argparse
import json
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.common import parser_of
from benchmarks.default.maps import add_maps, check_maps, take_map

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.measure import all_shares, evaluate
from counterpoint.search import LEXICAL, Searcher, SearchSettings
from counterpoint.search.settings import parse_weights

MEASURE = "nDCG@10"
FEEDBACKS = [(0.0, 5)] + [(weight, n) for weight in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4) for n in (5, 10, 20)]
DEPTH = 100  # documents a query; 200 are proposed by each first stage


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("collections", nargs="+", type=Path, help="folders in BEIR layout")
    parser.add_argument("--work", type=Path, required=True, help="folder of the indexes; used again if there")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="only these")
    parser.add_argument(
        "--at", metavar="WEIGHTS", help="of the parts, for feedback; the model's own if not given"
    )
    parser.add_argument("--queries", type=int, default=1000, help="drawn of each collection")
    parser.add_argument(
        "--documents",
        type=int,
        default=20_000,
        help="of a larger collection, so many: relevant ones and others",
    )
    add_maps(parser)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10, help="shares are multiples of one part in so many")
    parser.add_argument("--json", type=Path, help="save every share's values")
    options = parser.parse_args()
    if len({path.name for path in options.collections}) < len(options.collections):
        sys.exit("two collections have one name; their indexes would be one")
    if options.json and not options.json.parent.is_dir():
        sys.exit(f"--json {options.json}: there is no such folder")
    check_maps(options.maps)
    found = {path.name: measured(path, options) for path in options.collections}
    print(text(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def measured(source: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """nDCG@10 on one collection: by shares (as in `--weights`), of a hybrid's halves, by feedback."""
    collection, model = open_collection(source), load_model(options.model)
    settings = model.index_settings(options.model)
    own = own_weights(settings.search["weights"], options)
    take_map(options.maps, source.name, model)
    queries, qrels = collection.queries("train"), collection.qrels("train")
    judged = sorted(qrels)
    drawn = random.Random(options.seed).sample(judged, min(options.queries, len(judged)))
    asked = {query: queries[query] for query in drawn}, {query: qrels[query] for query in drawn}
    wanted = kept(collection, asked[1], options)
    folder = options.work / source.name
    if not (folder / "manifest.json").is_file():
        told(f"{source.name}: indexing {len(wanted):,} documents")
        documents = (document for document in collection.documents() if document.id in wanted)
        build_index(documents, model, folder, settings)
    told(f"{source.name}: searching for {len(drawn)} queries")
    with Index(folder) as index:
        if {index.name_of(at) for at in range(len(index))} != wanted:
            sys.exit(f"{folder} is an index of other documents; choose another --work")
        kept_as = index.manifest.settings
        if (kept_as["lexical"], kept_as["codec"]) != (asdict(settings.lexical), settings.codec):
            sys.exit(f"{folder} is an index of other settings; choose another --work")
        plain = replace(SearchSettings.for_index(index).with_weights(own), feedback=0.0)
        vectors = [part for part in own if part != LEXICAL]
        groups = {"shares": list(own)}
        if LEXICAL in own:
            groups |= {"BM25": [LEXICAL], "vectors": vectors}
        found = {
            name: searched_by(index, model, asked, by_shares(plain, group, options.steps))
            for name, group in groups.items()
        }
        fed = {
            f"{weight:g} of {documents}": replace(plain, feedback=weight, feedback_documents=documents)
            for weight, documents in FEEDBACKS
        }
        feedback = searched_by(index, model, asked, fed)
    halves = {name: max(found[name].values()) for name in groups if name != "shares"}
    return {"shares": found["shares"], "halves": halves, "feedback": feedback}


def own_weights(known: dict[str, float], options: argparse.Namespace) -> dict[str, float]:
    """The parts that get shares, and those that they have when feedback is chosen."""
    parts = options.parts or list(known)
    if unknown := set(parts) - set(known):
        sys.exit(f"--parts: no part is called {min(unknown)}; there are {', '.join(known)}")
    if not 2 <= len(set(parts)) == len(parts):
        sys.exit(f"--parts {' '.join(parts)}: shares are of two parts or more, each named once")
    if options.steps < len(parts):
        sys.exit(f"--steps {options.steps}: {len(parts)} parts cannot have a share each")
    own = parse_weights(options.at, parts) if options.at else {part: known[part] for part in parts}
    if without := [part for part in parts if not own.get(part)]:
        sys.exit(f"--at {options.at}: {without[0]} has no weight; parts to leave out are left out of --parts")
    return {part: own[part] for part in parts}


def kept(collection, qrels, options: argparse.Namespace) -> set[str]:
    """Ids of the documents that are searched: all, or those judged for the queries and others, drawn."""
    ids = sorted(document.id for document in collection.documents())
    judged = {document for grades in qrels.values() for document in grades}
    others = [name for name in ids if name not in judged]
    count = max(0, min(len(others), options.documents - (len(ids) - len(others))))
    return set(ids) & judged | set(random.Random(options.seed).sample(others, count))


def by_shares(plain: SearchSettings, parts: list[str], steps: int) -> dict[str, SearchSettings]:
    """Every way that gives each part a share, as `--weights` takes it."""
    found = {}
    for shares in all_shares(len(parts), steps, least=1):
        weights = dict(zip(parts, shares, strict=True))
        name = " ".join(f"{part}={share:g}" for part, share in weights.items())
        found[name] = replace(plain, weights=weights)
    return found


def searched_by(index: Index, model, asked, settings: dict[str, SearchSettings]) -> dict[str, float]:
    """The measure by each of the settings."""
    queries, qrels = asked
    each = list(settings.values())
    runs = Searcher(index, model, each[0]).run_each(queries, DEPTH, each)
    return {
        name: evaluate(run, qrels, [MEASURE]).measures[MEASURE]
        for name, run in zip(settings, runs, strict=True)
    }


def text(found) -> str:
    """All shares, the best in the mean first, and the halves; then feedback."""
    names = list(found)
    rows, halves, fed = (rows_of(found, what) for what in ("shares", "halves", "feedback"))
    better = [max(found[name]["halves"].values()) for name in names] if halves else None
    heads = "".join(f" {name:>14}" for name in names)
    lines = ["".ljust(36) + "   mean" + ("   worst" if better else "") + heads]
    lines += [line_of(label, values, better) for label, values in [*rows, *halves]]
    lines += ["", "feedback".ljust(36) + "   mean" + heads]
    lines += [line_of(label, values, None) for label, values in fed]
    return "\n".join([*lines, "", f"feedback: {fed[0][0]}", f"chosen: {rows[0][0]}"])


def line_of(label: str, values: list[float], better: list[float] | None) -> str:
    """A row of a table; `worst` only next to halves, which have no feedback."""
    worst = f" {min(value - half for value, half in zip(values, better, strict=True)):+.4f}" if better else ""
    each = "".join(f" {value:14.4f}" for value in values)
    return f"{label.ljust(36)} {sum(values) / len(values):.4f}{worst}{each}"


def rows_of(found, what: str) -> list[tuple[str, list[float]]]:
    """The values of each way over the collections, the best in the mean first."""
    names = list(found)
    rows = [(way, [found[name][what][way] for name in names]) for way in found[names[0]][what]]
    return sorted(rows, key=lambda row: -sum(row[1]))


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

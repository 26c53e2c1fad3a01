"""The weights of the default model's parts, chosen on training queries alone.

    python benchmarks/default_weights.py DATA/medquad DATA/scifact --work FOLDER [--json FILE]

Of each collection, queries of the split `train` are drawn and searched in all its documents by the hybrid.
Every way to give the parts shares that are multiples of a step, none without any, ranks what was found, and
that with the best nDCG@10 in the mean over the collections is chosen; of equals, the first that is printed.

The two collections above are those with training queries that MiniLM itself was not trained on. On what it
was trained on (Natural Questions, SQuAD, abstracts of papers by their titles) vectors look better than they
are on new collections, and BM25 gets too small a share.
"""

import argparse
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.measure import tune_shares
from counterpoint.model import load_model
from counterpoint.search import Searcher, SearchSettings

MEASURE = "nDCG@10"
DEPTH = 100  # documents a query; 200 are proposed by each first stage


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="+", type=Path, help="folders in BEIR layout")
    parser.add_argument("--work", type=Path, required=True, help="folder of the indexes; used again if there")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--parts", nargs="+", metavar="PART", help="only these, as `minilm-dense` has them")
    parser.add_argument("--queries", type=int, default=500, help="drawn of each collection")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10, help="shares are multiples of one part in so many")
    parser.add_argument("--json", type=Path, help="save every share's values")
    options = parser.parse_args()
    if len({path.name for path in options.collections}) < len(options.collections):
        sys.exit("two collections have one name; their indexes would be one")
    if options.json and not options.json.parent.is_dir():
        sys.exit(f"--json {options.json}: there is no such folder")
    found = {path.name: measured(path, options) for path in options.collections}
    print(text(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def measured(source: Path, options: argparse.Namespace) -> dict[str, float]:
    """nDCG@10 of each way to share, as `--weights` takes it, on one collection."""
    collection, model = open_collection(source), load_model(options.model)
    queries, qrels = collection.queries("train"), collection.qrels("train")
    judged = sorted(qrels)
    drawn = random.Random(options.seed).sample(judged, min(options.queries, len(judged)))
    folder = options.work / source.name
    if not (folder / "manifest.json").is_file():
        told(f"{source.name}: indexing")
        settings = model.index_settings(options.model, codec=model.codec)
        build_index(collection.documents(), model, folder, settings)
    told(f"{source.name}: searching for {len(drawn)} queries")
    asked = {query: queries[query] for query in drawn}, {query: qrels[query] for query in drawn}
    with Index(folder) as index:
        if len(index) != sum(1 for _ in collection.documents()):
            sys.exit(f"{folder} is an index of another collection; choose another --work")
        settings = SearchSettings.for_index(index)
        parts = options.parts or list(settings.weights)
        if unknown := set(parts) - set(settings.weights):
            sys.exit(f"no part is called {min(unknown)}; there are {', '.join(settings.weights)}")
        if options.steps < len(parts):
            sys.exit(f"--steps {options.steps}: {len(parts)} parts cannot have a share each")
        settings = replace(settings, weights=dict.fromkeys(parts, 1.0))
        searcher = Searcher(index, model, settings)
        found = tune_shares(searcher, *asked, options.steps, measure=MEASURE, depth=DEPTH)
    return {
        " ".join(f"{part}={share:g}" for part, share in zip(found.parts, shares, strict=True)): value
        for shares, value in found.values.items()
        if all(shares)
    }


def text(found) -> str:
    """All shares, the best first."""
    shares = next(iter(found.values()))
    means = {share: sum(values[share] for values in found.values()) / len(found) for share in shares}
    order = sorted(means, key=lambda share: -means[share])
    lines = ["shares".ljust(36) + "  mean " + " ".join(name.rjust(14) for name in found)]
    lines += [
        share.ljust(36)
        + f" {means[share]:.4f} "
        + " ".join(f"{values[share]:14.4f}" for values in found.values())
        for share in order
    ]
    return "\n".join([*lines, f"chosen: {order[0]}"])


def told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

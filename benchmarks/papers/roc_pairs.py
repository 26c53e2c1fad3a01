"""Table 6 of RoC: models that make no vector of a text, trained with hidden matches and without."""

import hashlib
import json
import random
from statistics import mean
from tempfile import TemporaryDirectory

from benchmarks.common import folder_of
from benchmarks.papers.roc_indexes import opened
from benchmarks.papers.roc_rows import HIDDEN, PAIRS, START
from benchmarks.papers.seeds import differences, print_table, spread_with_interval

from counterpoint.encode import load_interactive
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.search import Fusion, Run, Searcher, fuse_runs

RERANKED = 50  # of BM25's documents


def trained_pairs(output, wanted=None):
    """Names of the rows of table 6 that are trained."""
    names = [plain + hidden for plain in PAIRS for hidden in ("", *HIDDEN)]
    return [
        name
        for name in names
        if (wanted is None or name in wanted) and (folder_of(name, output) / "model").is_dir()
    ]


def evaluate_pairs(judged, names, count, output):
    """BM25's best documents of a sample of the queries in the order of each row, alone and with BM25.

    The sum is of both scores, each from 0 to 1 over a query's candidates, with equal weights; none is tuned.
    """
    chosen = sorted(judged.queries)
    chosen = random.Random(2).sample(chosen, min(count, len(chosen)))
    part = judged.of(chosen)
    with opened(START, judged, output) as (index, _):
        first = Searcher(index).run(part.queries, RERANKED, workflow="lexical")
    systems = {"BM25": part.values(first)}
    wanted = {document for query in first for document, _ in first[query]}
    documents = [document for document in judged.collection.documents() if document.id in wanted]
    both = Fusion(weights={"BM25": 1.0, "row": 1.0}, method="convex", normalise="min-max")
    for name in names:
        run = reranked(name, first, part.queries, documents, output)
        systems[name] = part.values(run)
        systems[f"BM25 + {name}"] = part.values(fuse_runs({"BM25": first, "row": run}, both))
    return {"queries": len(chosen), "systems": systems}


def show_pairs(found):
    """Print AP by row over seeds, and what hiding matches changes; `found` is by seed, system and measure."""
    first, *others = found.values()
    shared = [name for name in first if all(name in other for other in others)]
    means = {
        name: [100 * mean(systems[name]["AP"].values()) for systems in found.values()] for name in shared
    }
    print_table({name: {"AP": spread_with_interval(values, 1)} for name, values in means.items()}, "row")
    values = {
        (name, seed): {query: 100 * value for query, value in systems[name]["AP"].items()}
        for name in shared
        for seed, systems in found.items()
    }
    pairs = [(plain + hidden, plain) for plain in PAIRS for hidden in HIDDEN if plain + hidden in shared]
    print()
    print_table(differences(values, [pair for pair in pairs if pair[1] in shared]), "difference")


def reranked(name, first, queries, documents, output):
    """A row's scores of a run's documents, kept in a file that is read another time."""
    interactive = name.startswith("interactive")
    model = (load_interactive if interactive else load_model)(folder_of(name, output))
    said = json.dumps([model.fingerprint(), {query: dict(first[query]) for query in first}])
    path = output / "reranked" / f"{hashlib.sha256(said.encode()).hexdigest()[:16]}.trec"
    if path.is_file():
        return Run.read(path)
    if interactive:
        texts = {document.id: document.full_text for document in documents}
        run = model.rerank(first, queries, texts, RERANKED)
    else:
        with TemporaryDirectory() as folder:
            build_index(iter(documents), model, folder, model.index_settings(lexical=None))
            with Index(folder) as index:
                run = Searcher(index, model).run(queries, RERANKED, workflow="words", candidates=first)
    path.parent.mkdir(exist_ok=True)
    run.write(path)
    return run

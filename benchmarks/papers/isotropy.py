"""Isotropic DR's tables on MiniLM: ranking and isotropy before and after whitening, NICE and Glow.

    python -m benchmarks.papers.isotropy tables DATA/cranfield DATA/scifact … --work WORK [--seeds 0 1 2]
    python -m benchmarks.papers.isotropy rule DATA/cranfield DATA/scifact … --work WORK
    python -m benchmarks.papers.isotropy rule DATA/cranfield DATA/scifact … --work WORK --layers 2
    python -m benchmarks.papers.isotropy show FILE.json …

Every collection is encoded once, without training (--backbone takes a trained model), and its token vectors
are kept in WORK. Each is a source, whose documents and queries the maps are fitted to, and a target, whose
BM25 candidates are reranked. As in the paper, each source may have a model of its own, trained on it:

    counterpoint train isotropy:finetuned --data DATA/nq-qed -o runs/nq-qed
    counterpoint train isotropy:finetuned --data DATA/squad11-dev -o runs/squad11-dev
    python -m benchmarks.papers.isotropy tables DATA/nq-qed DATA/squad11-dev --work WORK
        --backbone 'runs/{source}'

Each target is then encoded by each source's model. Every pair has a row without a map (Ft in tables 1 to 3),
and rows out of distribution show what the target's own model has without a map, too (figure 3).

I(W) is of one sign, as in print, and I(W)± of both (docs/isotropy.md). What is reranked:

- ColBERT: all tokens' last hidden states, no projection, the sum of a query's highest cosines
- RepBERT: the mean of the tokens, cosine; mapped token by token before the mean, or as the mean

Seeds decide which documents a map is fitted to (four of five) and a flow's start. The encoder is the same
in all, so p(seeds), a one-tailed t-test of equal variances against a baseline without variance, says that the
maps are alike and nothing of other queries; p(queries), a one-tailed paired t-test over the target's queries,
does. With `--centre target` a map is fitted to a source as before, and then subtracts the mean of the
target's documents and queries in place of the source's, without labels; `--centre source target` measures
both.

`rule` fits whitening to more and fewer documents, shrunk, cut and without queries, in distribution, also for
[CLS] and, with --layers, for what the first layers make, whose space is a narrower cone. `show` puts what
several calls have saved (--json) into one table.
"""

import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from benchmarks.common import parser_of, read_json
from benchmarks.papers.isotropy_figures import draw
from benchmarks.papers.isotropy_maps import BLOCK, Chain, chain_of
from benchmarks.papers.isotropy_tables import ISOTROPY, MEASURES, NAMES, baseline, show, summary
from benchmarks.papers.isotropy_vectors import encoded, means, rows_of

from counterpoint.measure import evaluate
from counterpoint.measure.alignment import mean_cosine
from counterpoint.measure.isotropy import partition_isotropy
from counterpoint.measure.significance import paired_t_test, two_sample_t_test
from counterpoint.search import Run
from counterpoint.transform import Whitening

MODELS = {"ColBERT": "tokens", "RepBERT": "mean", "CLS": "cls"}
SOURCE = "{source}"  # in a backbone's name, that of the collection it was trained on
SAMPLE = 4000  # rows that isotropy is measured on
warnings.filterwarnings("ignore", message="Whitening")


# -- ranking --------------------------------------------------------------------------------------------


def unit(rows):
    return torch.nn.functional.normalize(rows, dim=-1)


def represent(texts, chain, level, models):
    """The unit vectors that each model scores, with offsets; tokens are mapped once for all models."""
    single = np.arange(len(texts.offsets))
    if level == "sequence":
        return {model: (unit(chain(rows_of(texts, MODELS[model]))), single) for model in models}
    parts = np.array_split(texts.values, max(1, len(texts.values) // BLOCK))
    mapped = torch.cat([chain(torch.from_numpy(part).float()) for part in parts])
    made = {"ColBERT": lambda: (unit(mapped), texts.offsets), "RepBERT": lambda: (averaged(), single)}

    def averaged():
        return unit(means(mapped, texts.offsets))

    return {model: made[model]() for model in models}


def rerank(target, queries, documents):
    """Score each query's candidates; both sides are (rows, offsets)."""
    results = {}
    for at, (query, found) in enumerate(target.first.items()):
        mine = queries[0][queries[1][at] : queries[1][at + 1]]
        scores = []
        for place in found:
            theirs = documents[0][documents[1][place] : documents[1][place + 1]]
            scores.append(float((mine @ theirs.T).amax(1).sum()))
        results[query] = {target.ids[place]: score for place, score in zip(found, scores, strict=True)}
    return Run(results)


def measured(target, chain, level, models):
    """For each model its measures, per query and in the mean, and the isotropy of the target's own rows."""
    queries = represent(target.queries, chain, level, models)
    documents = represent(target.candidates, chain, level, models)
    return {model: one_model(target, queries[model], documents[model]) for model in models}


def one_model(target, queries, documents):
    report = evaluate(rerank(target, queries, documents), target.qrels, MEASURES)
    sample = np.random.default_rng(0).permutation(len(documents[0]))[:SAMPLE]
    rows = torch.cat([documents[0][torch.from_numpy(sample)], queries[0][:SAMPLE]]).double().numpy()
    return {
        **{name: report.measures[name] for name in MEASURES},
        "I(W)": partition_isotropy(rows, signs="positive"), "I(W)±": partition_isotropy(rows),
        "avgcos": mean_cosine(rows),
        "queries": {name: dict(report.per_query[name]) for name in MEASURES},
    }  # fmt: skip


# -- tables ---------------------------------------------------------------------------------------------


def fit_rows(source, seed, space, options, count=None, queries=True):
    """Rows of fitted documents, drawn by the seed (four of five unless a count is given), and of queries.

    Queries are those of other splits; where there are none, the target's own, without their judgements. Where
    they are as many as the documents, the mean is of neither: `--fit-queries` says how many may be taken.
    """
    draw = np.random.default_rng([seed, 7])
    total = len(source.fit.offsets) - 1
    drawn = draw.permutation(total)[: count or max(1, 4 * total // 5)]
    own = source.other if source.other is not None else source.queries
    if options.fit_queries is not None:
        own = own.take(range(min(options.fit_queries, len(own.offsets) - 1)))
    found = torch.cat([rows_of(source.fit.take(drawn), space), *([rows_of(own, space)] if queries else [])])
    if len(found) > options.rows:
        found = found[torch.from_numpy(np.sort(draw.choice(len(found), options.rows, replace=False)))]
    return found


MEANS = ("source", "target")  # whose a map may subtract
LEVELS = {"token": ("ColBERT", "RepBERT"), "sequence": ("RepBERT",)}  # the models that each level can map


def tables(options):
    rows = []
    for owner, collections in encoded_by(options):
        rows += (plain := [row for target in collections for row in without_map(owner, target, options)])
        show(plain)
        for source in collections:
            if source.name not in (options.sources if owner is None else [owner]):
                continue
            for level in options.levels:
                for method in options.methods:
                    rows += (made := one_map(source, collections, level, method, options))
                    show(made)
    return with_tests(rows)


def encoded_by(options):
    """All collections as one model encodes them, or for every source, named, as its own does."""
    for owner in options.sources if SOURCE in options.backbone else [None]:
        backbone = options.backbone.replace(SOURCE, owner or "")
        yield owner, [encoded(path, options, backbone) for path in options.collections]


def without_map(owner, target, options):
    """The baseline: of the source whose model it is, or of none."""
    named = {"source": owner or "-", "target": target.name, "mean": "-", "level": "-", "method": "none"}
    found = measured(target, Chain(), "token", mapped_models("token", options))
    return [{**named, "model": model, "seeds": [one]} for model, one in found.items()]


def mapped_models(level, options):
    """Those asked for that a level can map."""
    return [model for model in LEVELS[level] if model in options.models]


def one_map(source, collections, level, method, options):
    """A map fitted once a seed, and measured on every target, about one mean or both."""
    found = {
        (target.name, model, mean): []
        for mean in options.centre
        for target in collections
        for model in mapped_models(level, options)
    }
    seconds = []
    for seed in options.seeds:
        started = time.perf_counter()
        space = "tokens" if level == "token" else "mean"
        rows = fit_rows(source, seed, space, options)
        chain = chain_of(method, rows.shape[1], options.rank, seed, options).fit(rows)
        seconds.append(time.perf_counter() - started)
        for mean in options.centre:
            for target in collections:
                own = fit_rows(target, seed, space, options) if mean == "target" else None
                asked = chain if own is None else chain.centred_on(own)
                for model, one in measured(target, asked, level, mapped_models(level, options)).items():
                    found[target.name, model, mean].append(one)
    common = {
        "level": level,
        "method": method,
        "fit_rows": len(rows),
        "fit_seconds": statistics.mean(seconds),
    }
    return [
        {"source": source.name, "target": target, "model": model, "mean": mean, **common, "seeds": seeds}
        for (target, model, mean), seeds in found.items()
    ]


def with_tests(rows):
    """Each row's means over the seeds, and its p-values against the same target and model without a map.

    A row of a model that was trained on another source has the measures of the target's own model, too.
    """
    for row in rows:
        for name in (*MEASURES, *ISOTROPY):
            row[name] = statistics.mean(seed[name] for seed in row["seeds"])
        row["distribution"] = "in" if row["source"] == row["target"] else "out"
        if row["source"] == "-":
            row["distribution"] = "-"
    for row in rows:
        before = baseline(row, rows)
        for name in MEASURES:
            if row["distribution"] == "out" and before["source"] != "-":
                row[f"own {name}"] = own[name] if (own := own_model(row, rows)) else ""
            if row["method"] != "none":
                row |= tests(row["seeds"], before["seeds"][0], name)
    return rows


def own_model(row, rows):
    """What a target's own model has without a map: the line in the paper's figure 3."""
    for other in rows:
        in_distribution = other["source"] == other["target"] == row["target"]
        if in_distribution and other["method"] == "none" and other["model"] == row["model"]:
            return other
    return None


def tests(seeds, base, name):
    """p-values of a measure, over seeds where there are several, and over queries."""
    values, found = [seed[name] for seed in seeds], {}
    if len(values) > 1:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)  # equal values are meant
            test = two_sample_t_test(values, [base[name]] * len(values), "greater")
        found[f"p(seeds) {name}"] = test.p_value
    return {**found, f"p(queries) {name}": p_queries(seeds, base, name)}


def p_queries(seeds, base, measure):
    """One-tailed: that the mean over seeds is better, over queries."""
    differences = [
        statistics.mean(seed["queries"][measure][query] for seed in seeds) - before
        for query, before in base["queries"][measure].items()
    ]
    return paired_t_test(np.array(differences), "greater").p_value


def rule(options):
    """What decides whether whitening helps, in distribution."""
    rows = []
    for path in options.collections:
        target = encoded(path, options, options.backbone.replace(SOURCE, path.name))
        for level, models in (("token", ("ColBERT", "RepBERT")), ("sequence", ("RepBERT", "CLS"))):
            for model in models if level in options.levels else ():
                space = "tokens" if level == "token" else MODELS[model]
                base = measured(target, Chain(), level, [model])[model]
                named = {"target": target.name, "model": model, "level": level}
                made = [{**named, "map": "none", **base}]
                for name, drawn, settings in cases(len(target.fit.offsets) - 1):
                    fitted = fit_rows(target, 0, space, options, **drawn)
                    chain = Chain([Whitening(fitted.shape[1], **settings)]).fit(fitted)
                    found = measured(target, chain, level, [model])[model]
                    tests = {f"p(queries) {m}": p_queries([found], base, m) for m in MEASURES}
                    made.append({**named, "map": name, "fit_rows": len(fitted), **found, **tests})
                show(made)
                rows += made
    return rows


def cases(full):
    """A name, which rows are fitted to, and how."""
    few = [n for n in (500, 1000, 2000, 4000) if n < full]
    yield from ((f"{n} documents", {"count": n}, {}) for n in few)
    yield "all documents", {"count": full}, {}
    yield "all, no queries", {"count": full, "queries": False}, {}
    for name, count in [(f"{n} documents", n) for n in few[:1]] + [("all", full)]:
        yield from ((f"{name}, shrunk by {s}", {"count": count}, {"shrinkage": s}) for s in ("oas", 0.1, 0.3))
    yield from ((f"all, rank {k}", {"count": full}, {"rank": k}) for k in (256, 128, 64))
    yield "all, rotated only", {"count": full}, {"power": 0.0}
    yield "all, half way", {"count": full}, {"power": -0.25}


def main():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("what", choices=["tables", "rule", "show"])
    add("collections", nargs="+", type=Path, metavar="PATH", help="folders; of `show` what --json has saved")
    add("--sources", nargs="+", metavar="NAME", help="those that maps are fitted to; all unless given")
    add("--work", type=Path, help="folder for token vectors; needed but for `show`")
    add("--methods", nargs="+", default=["whitening", "NICE", "Glow"], choices=["whitening", "NICE", "Glow"])
    add("--levels", nargs="+", default=list(LEVELS), choices=list(LEVELS))
    add("--seeds", nargs="+", type=int, default=[0, 1, 2])
    add("--backbone", default="minilm", help=f"what makes the hidden states; {SOURCE} in it: one a source")
    add("--models", nargs="+", default=list(LEVELS["token"]), choices=list(LEVELS["token"]))
    add("--layers", type=int, help="of the backbone, from the first; all unless given")
    add("--depth", type=int, default=100, help="documents that BM25 finds and that are reranked")
    add("--queries", type=int, default=100, help="a collection, drawn at random where there are more")
    add("--documents", type=int, default=5000, help="a collection that may be fitted to")
    add("--fit-queries", type=int, help="queries that a map is fitted to, at most; all unless given")
    add("--rows", type=int, default=200_000, help="vectors that a map is fitted to, at most")
    add("--centre", nargs="+", choices=MEANS, default=["source"], help="whose mean a map subtracts")
    add("--rank", type=int, default=380, help="directions that flows are fed")
    add("--steps", type=int, default=1000, help="of flows")
    add("--bfloat16", action="store_true", help="NICE's networks in bfloat16, for speed")
    add("--json", type=Path)
    add("--plots", type=Path, help="folder for the paper's figures 1 and 3; of tables")
    options = parser.parse_args()
    if options.what == "show":
        rows = saved(options.collections)
    else:
        rows = measure(options, parser.error)
    show(rows)
    summary(rows)
    if options.plots and "method" in rows[0]:
        draw(rows, options.plots)
    if options.json:
        options.json.write_text(json.dumps({"options": vars(options), "rows": rows}, default=str, indent=1))


def measure(options, fail):
    if options.work is None:
        fail("--work: a folder for token vectors is needed")
    names = [path.name for path in options.collections]
    if unknown := set(options.sources or ()) - set(names):
        fail(f"--sources: {min(unknown)!r} is none of the collections")
    options.sources = options.sources or names
    return (tables if options.what == "tables" else rule)(options)


def saved(paths):
    """Rows of several files, those without a map once; what differs in its seeds alone becomes one row."""
    found, drawn = {}, {}
    for path in paths:
        content = read_json(path)
        for row in content["rows"]:
            name = tuple(row.get(name) for name in NAMES)
            if name in found and row.get("method", "none") != "none":
                if again := drawn[name] & set(content["options"]["seeds"]):
                    raise SystemExit(
                        f"{path} has seed {min(again)} again of " + ", ".join(filter(None, name))
                    )
                row = {**row, "seeds": [*found[name]["seeds"], *row["seeds"]]}
            found[name] = row
            drawn.setdefault(name, set()).update(content["options"]["seeds"])
    rows = list(found.values())
    return with_tests(rows) if "method" in rows[0] else rows


if __name__ == "__main__":
    main()

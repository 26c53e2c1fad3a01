"""HIL's rows over several seeds: is it the hybrid, or the regulariser on H?

One evaluation of `hil.py` per seed is read. Differences within a seed are over all queries of all
collections, so a collection with more queries counts for more than in the means over collections.
"""

from statistics import mean

from benchmarks.common import read_json
from benchmarks.papers.hil_tables import delta, inter_iso, value
from benchmarks.papers.seeds import differences, print_table, spread, spread_with_interval, t_interval

QUESTIONS = {
    "HIL as the paper has it": ("HIL", "ColBERT"),
    "the regulariser and z-scores on H, without L": ("H only", "ColBERT"),
    "the regulariser on H, without z-scores and L": ("InterIso -0.3", "ColBERT"),
    "L next to an H that was trained with it": ("HIL", "H of HIL"),
    "what training next to L does to H": ("H of HIL", "H only"),
    "the whole hybrid against H alone": ("HIL", "H only"),
    "L alone": ("L only", "ColBERT"),
    "HIL against BM25": ("HIL", "BM25"),
    "ColBERT against BM25": ("ColBERT", "BM25"),
    "H driven apart, without z-scores and L": ("InterIso +0.3", "ColBERT"),
    "reg_L": ("HIL", "HIL without reg_L"),
    "reg_H": ("HIL", "HIL without reg_H"),
    "z-scores against fixed scales": ("HIL", "HIL at fixed scales"),
    "λ = +0.3 in place of −0.3": ("HIL λ +0.3", "HIL"),
    "regularisers": ("HIL", "HIL without regularisers"),
    "the ensemble of two ColBERTs": ("ColBERT-λ", "ColBERT"),
    "training": ("ColBERT", "ColBERT, untrained"),
    "CITADEL's, over BM25's hundred": ("CITADEL-HIL", "CITADEL"),
    # Added when the means of these rows with three seeds were known: they are the paper's other claims.
    "HIL against the ensemble of two ColBERTs": ("HIL", "ColBERT-λ"),
    "ensembles of other regularisers": ("ColBERT-cosreg", "ColBERT"),
    "the same, of IsoScore*": ("ColBERT-istar", "ColBERT"),
    "a ColBERT drawn together": ("InterIso -0.1", "ColBERT"),
    "H of HIL against it": ("H of HIL", "InterIso -0.1"),
    "idf": ("HIL", "HIL without idf"),
    "z-scores against neither them nor scales": ("HIL", "HIL without z-scores"),
    "HIL from a trained ColBERT, against that one": ("HIL from ColBERT", "ColBERT"),
    "the same, against one trained as long": ("HIL from ColBERT", "ColBERT, half as long again"),
    "documents of 300 positions": ("HIL, 300 positions", "ColBERT, 300 positions"),
    "further together": ("InterIso -1", "InterIso -0.1"),
    "further apart": ("InterIso +1", "InterIso +0.1"),
    "modules further from each other": ("ColBERT-λ -1", "ColBERT-λ"),
}
RANKED = {"in full": "full", "BM25's hundred": "rerank", "BM25-easy": "easy", "HIL's hundred": "same"}


def read(paths):
    """What evaluations have saved of their collections, by the stem of the file: the seed."""
    return {path.stem: read_json(path)["collections"] for path in paths}


def show_seeds(of_seed):
    """Print means over seeds, then the differences that `QUESTIONS` names."""
    if len(names := {tuple(measured) for measured in of_seed.values()}) > 1:
        raise SystemExit(f"the seeds were evaluated on different collections: {sorted(names)}")
    every = [one for measured in of_seed.values() for one in measured.values()]
    systems = dict.fromkeys(name for one in every for name in one["systems"])
    known = dict.fromkeys(name for one in every for name in _queries_in(one))
    print(f"nDCG@10 × 100, means over {', '.join(next(iter(of_seed.values())))}\n")
    print_table({name: _row(of_seed, name) for name in systems}, "row")
    found = {(name, seed): queries for name in known for seed, queries in _queries(of_seed, name).items()}
    pairs = {what: pair for what, pair in QUESTIONS.items() if all(row in known for row in pair)}
    lines = differences(found, pairs.values())
    print("\n" + "\n".join(f"- {what}: {first} − {second}" for what, (first, second) in pairs.items()) + "\n")
    print_table(lines, "difference of nDCG@10")
    if len(of_seed) > 1 and (compared := dict(_over_seeds(of_seed, pairs.values()))):
        print("\nDifferences of the first table's means × 100, with 95 % intervals over seeds\n")
        print_table(compared, "difference")


def show_layers(paths):
    """Print figure 5: each layer's ln InterIso minus that of another model.

    Args:
        paths: what `counterpoint diagnose MODEL DATA --layers --against OTHER --json` printed, of each seed.
    """
    of_seed = [read_json(path)["layers"]["layers"] for path in paths]
    counts = {len(layers) for layers in of_seed}
    if len(counts) > 1:
        raise SystemExit(f"the models have different numbers of layers: {sorted(counts)}")
    table = {
        str(layers[0]["layer"]): {"ln InterIso − the other's": spread_with_interval(values, 2)}
        for layers in zip(*of_seed, strict=True)
        for values in [[layer["log_difference"] for layer in layers]]
    }
    print_table(table, "layer")


def _row(of_seed, name):
    having = [
        measured for measured in of_seed.values() if all(name in m["systems"] for m in measured.values())
    ]
    row = {"seeds": str(len(having))}
    named = dict(RANKED)
    if any(not one["systems"][name].get("same") for measured in having for one in measured.values()):
        del named["HIL's hundred"]
    for title, what in named.items():
        row[title] = spread([value(measured, name, what) for measured in having], 1)
    for title, of in (
        ("InterIso of H", lambda m: inter_iso(m, f"{name}|h") or inter_iso(m, f"{name}|tokens")),
        ("ΔInterIso", lambda m: delta(m, name)),
    ):
        values = [of(measured) for measured in having]
        row[title] = "" if None in values else spread_with_interval(values, 2)
    return row


def _over_seeds(of_seed, pairs):
    """Of each pair, by what is ranked: treatment − control of means over collections, over seeds by t."""
    for first, second in pairs:
        line = {}
        for title, what in RANKED.items():
            gaps = [_gap(measured, first, second, what) for measured in of_seed.values()]
            if None not in gaps:
                low, high = t_interval(gaps)
                line[title] = f"{mean(gaps):.1f} [{low:.1f}, {high:.1f}]"
        if line:
            yield f"{first} − {second}", line


def _gap(measured, first, second, what):
    if any(
        name != "BM25" and name not in one["systems"] for one in measured.values() for name in (first, second)
    ):
        return None
    ends = value(measured, first, what), value(measured, second, what)
    return None if None in ends else ends[0] - ends[1]


def _queries(of_seed, name):
    """By seed: nDCG@10 of every query of every collection."""
    return {
        seed: {
            f"{collection}/{query}": score
            for collection, one in measured.items()
            for query, score in _queries_in(one)[name].items()
        }
        for seed, measured in of_seed.items()
        if all(name in _queries_in(one) for one in measured.values())
    }


def _queries_in(one):
    """Of a collection, by system: nDCG@10 of every query. BM25's, and CITADEL's over BM25's hundred, too."""
    apart = {"BM25": one.get("BM25", {}), **one.get("citadel", {})}
    return {name: found["queries"] for name, found in (apart | one["systems"]).items() if "queries" in found}

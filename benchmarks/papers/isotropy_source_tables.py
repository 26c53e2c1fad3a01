"""Tables of what `isotropy_sources.py` measured: its questions were fixed before the measurement."""

from statistics import mean

from benchmarks.papers.seeds import differences, print_table, spread

METHODS = ("whitening", "half whitening", "whitening, target's mean", "Glow", "NICE")
ISOTROPY = ("I(W)", "avgcos")
CONTROL = "without a cone"  # in the names of rows


def show(files):
    """Print what was chosen, and for each kind of model its rows, the differences, and those of each pair."""
    print_table(dict(choices(files)), "source, model, variant")
    for one in files:
        for error in one["errors"]:
            print(f"- {one['source']}: {error}")
    for kind in dict.fromkeys(row["kind"] for one in files for row in one["rows"]):
        found, rows = collected(files, kind)
        print(f"\n## {kind}\n")
        print_table(rows, "nDCG@10, means over seeds")
        for question, asked in questions({name for name, _ in found}).items():
            if asked:
                print(f"\n{question}\n")
                print_table(differences(found, asked), "difference of nDCG@10")
        print()
        print_table(dict(pairs(files, kind)), "source → target, nDCG@10")


def choices(files):
    """Every variant with the mean cosine of its source's training documents; the rule's choice is marked."""
    for one in files:
        for kind, found in one["variants"].items():
            for variant, measured in found.items():
                mark = "chosen" if one["chosen"].get(kind) == variant else ""
                yield f"{one['source']}, {kind}, {variant}", {**measured, "choice": mark}


def collected(files, kind):
    """By (row, seed) the value of each query, and by row what a table shows.

    Rows are of three parts: "in", "out", and "out, sources" (queries that some source's own model can rank).
    A row and seed that not all sources have is left out.
    """
    values, shapes, sources = {}, {}, {one["source"] for one in files}
    for one in files:
        for row in one["rows"]:
            if row["kind"] == kind:
                for name, queries, shape in parts_of(one, row, sources):
                    shapes.setdefault(name, []).append(shape)
                    there = values.setdefault((name, row["seed"]), {}).setdefault(one["source"], {})
                    there |= queries
    whole = {key: of for key, of in values.items() if len(of) == len(files)}
    found = {key: averaged(of.values()) for key, of in whole.items()}
    found |= gains(found)
    rows = {}
    for name in dict.fromkeys(name for name, _ in whole):
        own = [mean(queries.values()) for (row, _), queries in found.items() if row == name]
        isotropy = {key: f"{mean(shape[key] for shape in shapes[name]):.3f}" for key in ISOTROPY}
        rows[name] = {"seeds": str(len(own)), "nDCG@10": spread(own), **isotropy}
    return found, rows


def parts_of(one, row, sources):
    """(name, nDCG@10 of queries, isotropy) of the targets of a row."""
    name = row["row"] if row["cone"] else f"{row['row']}, {CONTROL}"
    for target, measured in row["targets"].items():
        asked = one["queries"][target]
        queries = {f"{target}/{query}": v for query, v in zip(asked, measured["nDCG@10"], strict=True)}
        where = "in" if target == one["source"] else "out"
        yield f"{where}: {name}", queries, measured
        if where == "out" and target in sources:
            yield f"out, sources: {name}", queries, measured


def averaged(of_sources):
    """A query's mean over the sources that have it."""
    every = {}
    for queries in of_sources:
        for query, value in queries.items():
            every.setdefault(query, []).append(value)
    return {query: mean(of) for query, of in every.items()}


def gains(found):
    """What each map adds to each query, as rows of their own, to compare models with and without a cone."""
    made = {}
    for (name, seed), queries in found.items():
        where, row = name.split(": ", 1)
        plain = found.get((f"{where}: {plain_of(row)}", seed))
        if row != plain_of(row) and plain is not None:
            gained = {query: value - plain[query] for query, value in queries.items()}
            made[f"{where}: gain of {row}", seed] = gained
    return made


def plain_of(row):
    return f"none, {CONTROL}" if row.endswith(CONTROL) else "none"


def questions(names):
    """By question, the pairs to compare (treatment, control), of those rows that were measured."""
    maps = [f"{level}, {method}" for method in METHODS for level in ("token", "sequence")]
    places = ("in", "out")
    asked = {
        "Does a map improve the ranking?": [(f"{w}: {m}", f"{w}: none") for w in places for m in maps],
        "Figure 3: out of distribution with a map, and the target's own model without one": [
            (f"out, sources: {row}", "in: none") for row in ("none", *maps)
        ],
        "The premise: does a map gain more where there is a cone?": [
            (f"{w}: gain of {m}", f"{w}: gain of {m}, {CONTROL}") for w in places for m in maps
        ],
        "Is a model with a cone worse than one without?": [
            (f"{w}: none", f"{w}: none, {CONTROL}") for w in places
        ],
        "Section 6.3: tokens or sequences?": [
            (f"{w}: token, {method}", f"{w}: sequence, {method}") for w in places for method in METHODS
        ],
    }
    return {what: [pair for pair in pairs if names.issuperset(pair)] for what, pairs in asked.items()}


def pairs(files, kind):
    """Of every source and target without a map, and what each map changes; means over seeds and queries."""
    for one in files:
        rows = [row for row in one["rows"] if row["kind"] == kind and row["cone"]]
        for target in one["queries"]:
            of_row = {}
            for row in rows:
                of_row.setdefault(row["row"], {})[row["seed"]] = mean(row["targets"][target]["nDCG@10"])
            plain = of_row.pop("none", {})
            cells = {"none": mean(plain.values())} if plain else {}
            for name, of_seed in of_row.items():
                cells[name] = f"{mean(value - plain[seed] for seed, value in of_seed.items()):+.3f}"
            yield f"{one['source']} → {target}", cells

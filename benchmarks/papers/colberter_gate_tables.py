"""Tables of `colberter_gate.py`: the choice on held-out queries, then quality and what the gate drops.

JSON has turned thresholds into text. All counts are of rows, that is, distinct words of a document.
"""

from statistics import mean

from benchmarks.papers.colberter_gate_measures import CLASSES
from benchmarks.papers.colberter_gate_rows import GRID, LOSS, PAPER, QUESTIONS, THRESHOLDS, named
from benchmarks.papers.seeds import differences, print_table, spread

DEV, NONE = "dev", "0.0"
WORKFLOW = "dense-words"  # the paper's choice


def show(seeds, teacher=None):
    """Print everything; what no seed has is left out.

    Args:
        seeds: what `run` has saved, one of each seed.
        teacher: what `teach` has saved.
    """
    seeds = [on_text_keys(found) for found in seeds]
    if teacher:
        show_teacher(teacher)
    chosen = show_choice(seeds)
    states = {row: (row, NONE) for found in seeds for row in found["rows"]}
    if chosen is not None:
        states[f"{chosen[0]}, r above {chosen[1]}"] = chosen
    collections = list(seeds[0]["queries"])
    print(f"\nMeans over {', '.join(collections)}; over seeds, with the lowest and the highest\n")
    print_table({name: quality_row(seeds, state, collections) for name, state in states.items()}, "row")
    show_differences(seeds, states, collections, chosen)
    for print_drops in (show_classes, show_words):
        print_drops(seeds, states, collections)


def on_text_keys(found):
    """The same whether it was read from JSON or not: thresholds as text."""
    if isinstance(found, dict):
        return {str(key): on_text_keys(value) for key, value in found.items()}
    return found


def show_teacher(teacher):
    print("\nMargins of the training lists: mean, standard deviation, share above 0\n")
    titles = ("mean", "deviation", "above 0")
    print_table(
        {name: dict(zip(titles, values, strict=True)) for name, values in teacher["margins"].items()},
        "teacher",
    )
    if "held out" in teacher:
        print("\nBM25's best twenty for held-out queries, nDCG@10\n")
        print_table({name: {"nDCG@10": value} for name, value in teacher["held out"].items()}, "order")


def having(seeds, row):
    return [found["rows"][row] for found in seeds if row in found["rows"]]


def show_choice(seeds):
    """α_CS and threshold by the rule, printed and returned; None if nothing may be dropped."""
    free = having(seeds, named(0))
    if not free:
        return print("\nno choice without the row that has no gate")
    lines, allowed = {}, {}
    for row in map(named, sorted(GRID)):
        for level in map(str, THRESHOLDS):
            pairs = [
                (dev_value(found["rows"][row], level), dev_value(found["rows"][named(0)], NONE), found)
                for found in seeds
                if row in found["rows"] and named(0) in found["rows"]
            ]
            if not pairs or level not in pairs[0][2]["rows"][row]["collections"][DEV]["quality"]:
                continue
            loss = mean(without - value for value, without, _ in pairs)
            share = mean(dropped_share(found["rows"][row], [DEV], level) for *_, found in pairs)
            lines[f"{row}, r above {level}"] = {
                "seeds": str(len(pairs)),
                "nDCG@10": spread([value for value, *_ in pairs]),
                "loss": f"{loss:+.4f}",
                "dropped": f"{share:.1%}",
            }
            if row != named(0) and loss <= LOSS and share > 0:
                allowed[row, level] = share
    print(f"\nThe choice, on held-out training queries ({WORKFLOW})\n")
    print_table(lines, "α_CS and threshold")
    best = max(allowed, key=allowed.__getitem__) if allowed else None
    print(f"\nLargest share dropped with at most {LOSS} lost: {best or 'none'}")
    return best


def dev_value(row, level):
    values = row["collections"][DEV]["quality"].get(level, {}).get(f"{WORKFLOW} nDCG@10", [0.0])
    return mean(values)


def dropped_share(row, collections, level):
    """Of all rows of some collections; 0 without a gate."""
    ones = [row["collections"][name] for name in collections]
    if "dropped" not in ones[0]:
        return 0.0
    return sum(one["dropped"][level] for one in ones) / sum(one["rows"] for one in ones)


def quality_row(seeds, state, collections):
    row, level = state
    found = having(seeds, row)
    line = {"seeds": str(len(found))}
    for what in ("dense nDCG@10", "words nDCG@10", "dense-words nDCG@10", "hybrid nDCG@10", "hybrid R@100"):
        of_seed = [
            mean(value_of(one["collections"][name]["quality"], level, what) for name in collections)
            for one in found
        ]
        line[what] = spread(of_seed)
    line["dropped"] = spread([dropped_share(one, collections, level) for one in found])
    line["vectors"] = spread([vectors(one, collections, level) for one in found], 1)
    line["weight of dense"] = spread([one["weights"]["mean"] for one in found], 2)
    return line


def value_of(quality, level, what):
    """The mean over queries; the pooled vectors alone do not depend on the threshold."""
    return mean(quality[level].get(what) or quality[NONE][what])


def vectors(row, collections, level):
    """Rows kept per document, mean over collections."""
    ones = [row["collections"][name] for name in collections]
    return mean((one["rows"] - one.get("dropped", {}).get(level, 0)) / one["documents"] for one in ones)


def show_differences(seeds, states, collections, chosen):
    pairs = dict(QUESTIONS)
    if chosen is not None:
        pairs["the price of what was chosen"] = (f"{chosen[0]}, r above {chosen[1]}", named(0))
    pairs = {what: pair for what, pair in pairs.items() if all(row in states for row in pair)}
    found = {
        (name, str(one["seed"])): {
            f"{collection}/{query}": value
            for collection in collections
            for query, value in zip(
                one["queries"][collection],
                one["rows"][row]["collections"][collection]["quality"][level][f"{WORKFLOW} nDCG@10"],
                strict=True,
            )
        }
        for name, (row, level) in states.items()
        for one in seeds
        if row in one["rows"]
    }
    print("\n" + "\n".join(f"- {what}: {first} − {second}" for what, (first, second) in pairs.items()) + "\n")
    if pairs:
        print_table(differences(found, dict.fromkeys(pairs.values())), f"difference of nDCG@10, {WORKFLOW}")


def gated(seeds, states):
    """States of rows that have a gate."""
    return {
        name: state
        for name, state in states.items()
        if "mean" in next(iter(having(seeds, state[0])[0]["collections"].values()))
    }


def show_classes(seeds, states, collections):
    """Share of rows dropped by class, over all evaluation collections, and how r tells stop words apart."""
    table = {}
    for name, (row, level) in gated(seeds, states).items():
        found, line = having(seeds, row), {}
        for kind in CLASSES:
            line[kind] = spread([class_share(one, collections, kind, level) for one in found])
        line["r below another's"] = spread(
            [mean(one["collections"][c]["separation"] or 0.5 for c in collections) for one in found]
        )
        table[name] = line
    if table:
        print("\nShare of rows dropped, and the probability that a stop word's r is below another row's\n")
        print_table(table, "row")


def class_share(row, collections, kind, level):
    ones = [row["collections"][name]["classes"][kind] for name in collections]
    return sum(one["dropped"][level] for one in ones) / max(1, sum(one["rows"] for one in ones))


def show_words(seeds, states, collections):
    """Mean r / share dropped of the most frequent words of each collection, mean over seeds."""
    shown = {
        name: state
        for name, state in gated(seeds, states).items()
        if name in (named(PAPER), *QUESTIONS) or state[1] != NONE
    }
    for collection in collections:
        table = {}
        for name, (row, level) in shown.items():
            words = [one["collections"][collection]["words"] for one in having(seeds, row)]
            table[name] = {
                word.replace("|", "\\|"): f"{mean(one[word]['mean'] for one in words):.2f}"
                f" / {mean(one[word]['dropped'][level] / one[word]['rows'] for one in words):.0%}"
                for word in words[0]
            }
        if table:
            print(f"\n{collection}: mean r / share dropped of the words with most rows\n")
            print_table(transposed(table), "word")


def transposed(table):
    words = dict.fromkeys(word for row in table.values() for word in row)
    return {word: {name: row.get(word, "") for name, row in table.items()} for word in words}

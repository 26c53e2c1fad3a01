"""Does training help the default? Small parts over a frozen backbone, chosen by leaving a collection out.

    python -m benchmarks.default.learn choose DATA --work FOLDER [--plot FILE]
    python -m benchmarks.default.learn evaluate DATA --work FOLDER

DATA holds the collections in BEIR layout. `choose` encodes each training collection once, keeps what it needs
in FOLDER, and trains every way of `WAYS` on all collections but one, for each of them; at step 0 every way is
the untrained default. Printed is the gain in nDCG@10 on the collections left out, of words alone and of the
hybrid. `evaluate` trains the way with the best mean gain of the hybrid on all of them, with three seeds, and
searches the evaluation collections. What is done is kept, and not done again.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from benchmarks.common import EVALUATION, parser_of
from benchmarks.default.scenes import Scene, scene_of
from benchmarks.default.small import Columns, Small, Way, measured, trained
from benchmarks.default.states import SPLITS, Asking, cached, index_of

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.measure.significance import bootstrap_interval, randomisation_test
from counterpoint.plots.curves import Curve, curves_plot
from counterpoint.search import Searcher, Workflow

ONLY_CHOOSES = ("scifact",)  # it is an evaluation collection, so nothing is trained on its training queries
SEEDS = (0, 1, 2)
LEVEL = 0.0005  # gains that differ by less are level, and the fewest steps are taken
KINDS = ("words", "cosine", "hybrid")
WORKFLOWS: Mapping[str, Workflow] = {"words": "words", "cosine": "dense", "hybrid": "hybrid"}
TEST = {"msmarco-v2-dl21-pool": "dl21-pool"}  # the split, where it is not "test"

LONG = (0, 50, 100, 200, 400, 800, 1600)
WAYS = (
    Way(("importance",), stops=LONG),
    Way(("importance",), loss="sum", stops=LONG),
    Way(("importance",), strength=1.0, stops=LONG),
    Way(("importance",), hidden=32, stops=LONG),
    Way(("importance",), idf=True, stops=LONG),
    Way(("mean",), rate=1e-4, stops=LONG),
    Way(("mean",), loss="sum", rate=1e-4, stops=LONG),
    Way(("mean",), rank="diagonal", stops=LONG),
    Way(("map",), rate=1e-4),
    Way(("map",), rate=3e-4, stops=(0, 50, 100, 200, 400, 800)),
    Way(("map",), rank="diagonal"),
    Way(("map",), loss="teacher", of="words", rate=1e-4),
)

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""nDCG@10 of every query by step and kind."""


def main() -> None:
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("choose", "evaluate"):
        command = commands.add_parser(name)
        command.add_argument("data", type=Path)
        command.add_argument("--work", type=Path, required=True, help="folder of what is kept")
        command.add_argument("--collections", nargs="+", default=list(SPLITS), metavar="NAME")
    commands.choices["choose"].add_argument("--plot", type=Path, help="draw gain against steps")
    commands.choices["evaluate"].add_argument("--on", nargs="+", default=EVALUATION, metavar="NAME")
    options = parser.parse_args()
    scenes = scenes_of(options)
    columns = {name: Columns(scene) for name, scene in scenes.items()}
    found = {way: left_out(way, 0, scenes, columns, options.work) for way in WAYS}
    if options.what == "choose":
        show_choice(found, {way: seen(way, scenes, columns, options.work) for way in WAYS})
        if options.plot:
            plotted(found).save(options.plot)
        return
    way, steps = chosen(found)
    print(f"chosen: {way.name}, {steps} steps")
    if not steps:
        print("no training gains on the collections left out, so nothing is searched")
        return
    for seed in SEEDS:
        print(
            line(f"left out, seed {seed}", gains(left_out(way, seed, scenes, columns, options.work), steps))
        )
    parts = [trained_on_all(way, (steps, seed), scenes, columns, options.work) for seed in SEEDS]
    show_searched({name: searched(name, parts, options) for name in options.on})


# -- leaving one out -------------------------------------------------------------------------------------


def scenes_of(options: argparse.Namespace) -> dict[str, Scene]:
    """The scene of every training collection."""
    model, found = load_model("minilm"), {}
    for name in options.collections:
        drawn, own = cached(name, options.data, options.work, model)
        folder = index_of(drawn, own, options.work / name / "index")
        found[name] = scene_of(options.work / name / "scene.pt", folder, own, drawn)
        print(f"{name}: {len(drawn.documents):,} documents, {len(found[name])} queries", flush=True)
    return found


def left_out(
    way: Way, seed: int, scenes: Mapping[str, Scene], columns: Mapping[str, Columns], work: Path
) -> dict[str, Values]:
    """The values on each collection, of the parts trained on the others; kept in files."""
    found: dict[str, Values] = {}
    for held, scene in scenes.items():
        path = folder_of(way, work) / f"{held}-{seed}.json"
        if not path.is_file():
            others = {name: each for name, each in scenes.items() if name not in (held, *ONLY_CHOOSES)}
            values = {
                str(step): {
                    kind: each.round(6).tolist()
                    for kind, each in measured(small, scene, columns[held]).items()
                }
                for step, small in trained(way, others, columns, seed, way.stops)
            }
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
            gain = np.mean(values[str(way.stops[-1])]["hybrid"]) - np.mean(values["0"]["hybrid"])
            print(f"{way.name}, without {held}: {gain:+.4f} at the last step", flush=True)
        found[held] = json.loads(path.read_text())
    return found


def seen(
    way: Way, scenes: Mapping[str, Scene], columns: Mapping[str, Columns], work: Path
) -> dict[str, float]:
    """What the last step gains on the queries that were trained on, all but those that only choose."""
    path = folder_of(way, work) / "seen.json"
    if not path.is_file():
        used = {name: each for name, each in scenes.items() if name not in ONLY_CHOOSES}
        values = {
            step: {name: measured(small, each, columns[name])["hybrid"].mean() for name, each in used.items()}
            for step, small in trained(way, used, columns, 0, (0, way.stops[-1]))
        }
        first, last = values.values()
        path.write_text(json.dumps({name: float(last[name] - first[name]) for name in used}))
    return json.loads(path.read_text())


def folder_of(way: Way, work: Path) -> Path:
    """The folder of a way's figures."""
    return work / "ways" / re.sub(r"[^\w.=+-]+", "_", way.name)


def gains(found: Mapping[str, Values], steps: int, kind: str = "hybrid") -> list[float]:
    """What training gains on each collection left out."""
    return [float(np.mean(each[str(steps)][kind]) - np.mean(each["0"][kind])) for each in found.values()]


def chosen(found: Mapping[Way, Mapping[str, Values]]) -> tuple[Way, int]:
    """The way and the steps with the best mean gain of the hybrid; of level ones, the fewest steps."""
    every = {(way, steps): np.mean(gains(found[way], steps)) for way in found for steps in way.stops}
    best = max(every.values())
    return min(
        (each for each in every if every[each] > best - LEVEL), key=lambda each: (each[1], -every[each])
    )


def show_choice(found: Mapping[Way, Mapping[str, Values]], fits: Mapping[Way, Mapping[str, float]]) -> None:
    names = list(next(iter(found.values())))
    print(line("untrained", [], names))
    for kind in KINDS:
        print(
            line(
                kind, [float(np.mean(each["0"][kind])) for each in found[next(iter(found))].values()], sign=""
            )
        )
    for way, values in found.items():
        for kind in KINDS:
            means = [f"{at}: {np.mean(gains(values, at, kind)):+.4f}" for at in way.stops[1:]]
            print(f"{way.name}: {kind} by steps ".ljust(53) + ", ".join(means))
        print(line("  hybrid, last step, queries trained on", list(fits[way].values())))
        best = max(way.stops[1:], key=lambda steps: np.mean(gains(values, steps)))
        for kind in ("words", "hybrid"):
            low, high = interval([difference(each, best, kind) for each in values.values()])
            label = f"  {kind}, {best} steps, {low:+.4f} to {high:+.4f}"
            print(line(label, gains(values, best, kind)))
    way, steps = chosen(found)
    print(f"chosen: {way.name}, {steps} steps")


def difference(values: Values, steps: int, kind: str) -> np.ndarray:
    """By how much each query's value changes."""
    return np.array(values[str(steps)][kind]) - np.array(values["0"][kind])


def interval(differences: Sequence[np.ndarray]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over collections; queries of each are drawn anew."""
    draw = np.random.default_rng(0)
    means = [each[draw.integers(0, len(each), (10_000, len(each)))].mean(axis=1) for each in differences]
    low, high = np.quantile(np.mean(means, axis=0), [0.025, 0.975])
    return float(low), float(high)


def plotted(found: Mapping[Way, Mapping[str, Values]]):
    """The mean gain on the collections left out, by steps, of ways that differ visibly from each other."""
    drawn = [way for way in found if way.loss != "sum" and not (way.hidden or way.idf)]
    curves = [
        Curve(way.name, way.stops, tuple(float(np.mean(gains(found[way], at))) for at in way.stops))
        for way in drawn
    ]
    levels = {"least gain that counts": LEVEL}
    made = curves_plot(curves, value="gain in nDCG@10 on collections left out", levels=levels)
    stops = sorted({at for way in drawn for at in way.stops})
    made.axes.set_xscale("symlog", linthresh=max(1, stops[1]))
    made.axes.set_xticks(stops, labels=map(str, stops))
    made.axes.set_xlim(left=0)
    return made


# -- the evaluation collections --------------------------------------------------------------------------


def trained_on_all(
    way: Way, at: tuple[int, int], scenes: Mapping[str, Scene], columns: Mapping[str, Columns], work: Path
) -> Small:
    """The parts trained on every collection but those that only choose, for some steps; kept in a file."""
    steps, seed = at
    used = {name: scene for name, scene in scenes.items() if name not in ONLY_CHOOSES}
    one = next(iter(used.values()))
    path = work / f"chosen-{seed}.pt"
    if not path.is_file():
        (small,) = [each for _, each in trained(way, used, columns, seed, [steps])]
        torch.save(small.state_dict(), path)
    small = Small(way, one.words.shape[2], one.mean.shape[1])
    small.load_state_dict(torch.load(path, weights_only=True))
    return small


def searched(name: str, parts: Sequence[Small], options: argparse.Namespace) -> dict[str, list[list[float]]]:
    """nDCG@10 of every query by kind: untrained, then by each of the trained parts; kept in a file."""
    path = options.work / "evaluation" / f"{name}.json"
    if not path.is_file():
        collection, model = open_collection(options.data / name), load_model("minilm")
        split = TEST.get(name, "test")
        queries, qrels = collection.queries(split), collection.qrels(split)
        folder = path.with_suffix("")
        if not (folder / "manifest.json").is_file():
            build_index(collection.documents(), model, folder, model.index_settings("minilm"))
        found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        with Index(folder) as index:
            for each in (model, *(Asking(model, part.changed) for part in parts)):
                searcher = Searcher(index, cast(Any, each))
                for kind, workflow in WORKFLOWS.items():
                    run = searcher.run(queries, 100, workflow=workflow)
                    values = evaluate(run, qrels, ["nDCG@10"]).per_query["nDCG@10"]
                    found[kind].append([values[query] for query in sorted(values)])
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


def show_searched(found: Mapping[str, Mapping[str, list[list[float]]]]) -> None:
    print(line("", [], list(found)))
    for kind in KINDS:
        values = [np.array(each[kind]) for each in found.values()]
        print(line(f"{kind}, untrained", [each[0].mean() for each in values], sign=""))
        for at in range(1, len(values[0])):
            print(line(f"{kind}, seed {SEEDS[at - 1]}", [each[at].mean() for each in values], sign=""))
        changes = [each[1:].mean(axis=0) - each[0] for each in values]
        print(line(f"{kind}, mean of seeds - untrained", [each.mean() for each in changes]))
        ends = [bootstrap_interval(each) for each in changes]
        print(line("  95 % interval from", [low for low, _ in ends]))
        print(line("  to", [high for _, high in ends]))
        print(line("  p", [randomisation_test(each).p_value for each in changes], sign=""))
        for label, some in (("all", changes), ("without scifact", changes[1:])):
            low, high = interval(some)
            mean = np.mean([each.mean() for each in some])
            print(f"  mean over {label}: {mean:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}")


def line(label: str, values: Sequence[float], names: Sequence[str] = (), sign: str = "+") -> str:
    if names:
        return label.ljust(44) + "    mean" + "".join(f" {name[:11]:>11}" for name in names)
    return f"{label.ljust(44)} {np.mean(values):{sign}7.4f}" + "".join(f" {x:{sign}11.4f}" for x in values)


if __name__ == "__main__":
    main()

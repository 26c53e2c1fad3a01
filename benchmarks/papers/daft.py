"""DAFT's claims on real text with encoders cut from MiniLM: who collapses, who does not, what layers cost.

    python -m benchmarks.papers.daft collapse DATA/squad11-dev -o RUNS [--jobs 2]
    python -m benchmarks.papers.daft layers DATA/squad11-dev -o RUNS

`collapse` trains a query encoder of two layers with several document encoders, with and without alignment
and with the batch as negatives, and leaves out one part of the model after another. `layers` trains query
encoders of 2, 4 and 6 layers beside MiniLM's whole and times them. Every row is a run of `counterpoint
train` in a folder of its own (its recipe is written beside it), so a benchmark that was stopped goes on where
it was.
"""

import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.common import parser_of

from counterpoint.encode import (
    Cls,
    DualEncoder,
    EncodeOptions,
    Encoder,
    Linear,
    Mean,
    Stack,
    TextInput,
    Transformer,
    Unit,
)
from counterpoint.learn import (
    AlignmentStop,
    CachedContrastive,
    Contrastive,
    NegativeCache,
    PositiveDistance,
    Train,
    WatchSettings,
)
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot

CANDIDATES, SCALE, DIM = 64, 20.0, 256
EQUAL_SCORES = math.log(1 + CANDIDATES)  # the loss of a collapsed model (DAFT, equation 7)
DOCUMENTS = {  # document encoders; "far" lies in a space of its own behind a random layer
    "cls": lambda: (Transformer("minilm"), Cls()),
    "cls, far": lambda: (Transformer("minilm"), Cls(projection=Linear(384))),
    "mean": lambda: (Transformer("minilm"), Mean()),
    "mean, far": lambda: (Transformer("minilm"), Mean(projection=Linear(384))),
    "cls of 4 layers": lambda: (Transformer("minilm", layers=4), Cls()),
}
ALIGNED = ("no alignment", "alignment")


def light(head):
    """A query encoder of two layers."""
    return Transformer("minilm", layers=2), head


def model_of(documents, query, length, shared):
    """Two encoders, and one projection for both or one for each."""
    projection = Stack([Linear(DIM), Unit()])
    sides = []
    for backbone, head in (query, DOCUMENTS[documents]()):
        if not shared:
            head = type(head)(projection=Stack([Linear(DIM), Unit()]))
        sides.append(Encoder(backbone, {"v": head}, query=TextInput(32), document=TextInput(length)))
    encoder = DualEncoder(*sides, {"v": projection} if shared else None)
    return Model(encoder, search={"weights": {"v": 1.0}, "scale": "none"})


def stages_of(arm, steps, align, delta=None):
    """All arms have the same number of steps in all; alignment spends some of them on the query encoder."""
    common = {"batch": 16, "warmup": 20, "schedule": "constant", "keep": "last"}
    common["watch"] = WatchSettings(every=25)
    cached = {**common, "cache": NegativeCache(size=2048, groups=CANDIDATES, scale=SCALE)}
    fine_tune = {"name": "fine-tune", "lr": 2e-5}
    if arm == "batch":
        loss = Contrastive(scale=SCALE)
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **common)]
    loss = CachedContrastive(scale=SCALE)
    if arm == "alternating":  # one encoder a step, in place of a stage of alignment
        turns = {"alternate": ("query.*", "document.*")}
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **turns, **cached)]
    if arm == "no alignment":
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **cached)]
    stop = AlignmentStop(patience=4, every=50, delta=delta)
    first = {"name": "align", "lr": 2e-4, "learn": ("query.*",), "stop": stop}
    return [
        Train(CachedContrastive(scale=SCALE), steps=align, evaluate_every=align, **first, **cached),
        Train(loss, steps=steps, evaluate_every=steps, **fine_tune, **cached),
    ]


def recipe_of(name, model, stages):
    return Recipe(
        name=name,
        paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning",
        model=model,
        stages=stages,
        scorer=Dot("v"),
        data=DataSettings(development=None, held_out=300),
    )


def collapse_rows():
    """Names to recipes. A query encoder reads [CLS], as DAFT's do, unless the row says otherwise."""
    chosen = [(documents, light(Cls()), True, arm) for documents in DOCUMENTS for arm in ALIGNED]
    chosen += [(documents, light(Cls()), True, "batch") for documents in ("cls", "cls of 4 layers")]
    chosen.append(("cls", light(Cls()), True, "alternating"))
    rows = {
        f"{documents}; {arm}": (documents, query, shared, arm) for documents, query, shared, arm in chosen
    }
    rows |= {
        f"mean, far, queries by mean; {arm}": ("mean, far", light(Mean()), True, arm)
        for arm in (*ALIGNED, "batch")
    }
    random = Transformer("minilm", layers=2, random=True), Cls()
    embeddings = Transformer("minilm", layers=0), Mean()
    rows |= {
        f"cls; alignment, {what}": ("cls", query, shared, "alignment")
        for what, query, shared in (
            ("own projections", light(Cls()), False),
            ("random query encoder", random, True),
            ("no self-attention", embeddings, True),
        )
    }
    return {
        name: recipe_of(name, model_of(documents, query, 48, shared), stages_of(arm, 150, 200))
        for name, (documents, query, shared, arm) in rows.items()
    }


def layer_rows():
    """Query encoders by which of MiniLM's six layers they keep, aligned by the loss or by distance."""
    kept = {
        "6 layers": None,
        "4 layers, the first": 4,
        "4 layers, first and last": [0, 1, 4, 5],
        "4 layers, first and last, by distance": [0, 1, 4, 5],
        "2 layers, the first": 2,
        "2 layers, first and last": [0, 5],
        "2 layers, first and last, by distance": [0, 5],
        "2 layers, first and last, by distance, 600 steps": [0, 5],
    }
    rows = {}
    for name, layers in kept.items():
        query = Transformer("minilm", layers=layers), Mean()
        # The paper's δ calls cut encoders aligned at the start; so no δ, but the end of the estimate's fall.
        delta = None if layers is None else -1e6
        align, fine_tune = stages_of("alignment", 100, 600 if "600" in name else 200, delta)
        if "by distance" in name:
            changes = {"objective": PositiveDistance("v"), "mirror": True, "batch": 64, "cache": None}
            align = replace(align, **changes, stop=None)
        rows[name] = recipe_of(name, model_of("mean", query, 64, True), [align, fine_tune])
    return rows


def folder_of(name, arguments):
    return arguments.output / name.replace(", ", "-").replace("; ", "--").replace(" ", "-")


def carry_out(name, recipe, arguments):
    """Train unless it has been; a run that was stopped goes on."""
    folder = folder_of(name, arguments)
    if not (folder / "model").is_dir():
        arguments.output.mkdir(parents=True, exist_ok=True)
        path = folder.with_suffix(".toml")
        path.write_text(recipe.to_toml())
        command = [sys.executable, "-m", "counterpoint", "train", path, "--data", arguments.data]
        command += ["-o", folder, *(["--resume"] if folder.is_dir() else [])]
        threads = {} if arguments.jobs == 1 else {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        print(f"{name}: done", file=sys.stderr, flush=True)
    return described(folder)


def described(folder):
    """What came of a run, from its log."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    last = {"align": {}, "fine-tune": {}}
    for line in lines:
        last[line["stage"]] |= line
    end, aligned = last["fine-tune"], last["align"]
    losses = [line["loss"] for line in lines if line["stage"] == "fine-tune" and "loss" in line][-5:]
    estimates = [line["alignment.kl"] for line in lines if "alignment.kl" in line]
    names = {"cos": "cosine", "rank": "rank"}
    sides = {
        f"{short} {side[0]}": end[f"watch.v.{side}.{name}"]
        for side in ("document", "query")
        for short, name in names.items()
    }
    found = {"loss": sum(losses) / len(losses), **sides, "nDCG@10": end["nDCG@10"], "R@100": end["R@100"]}
    if estimates:
        found["KL"] = f"{estimates[0]:.0f} to {estimates[-1]:.0f}"
    if aligned:
        found["aligned"] = f"{aligned['step']} steps, {aligned.get('stopped', 'budget').split(':')[0]}"
    return found


def add_latencies(rows, arguments):
    """Time the query encoders on one thread, one query at a time, tokenising included."""
    import torch

    from counterpoint.data import open_collection

    torch.set_num_threads(1)
    collection = open_collection(arguments.data, passage_words=None)
    queries = list(collection.queries("test").values())[:200]
    for name, row in rows.items():
        model = load_model(folder_of(name, arguments))
        row["ms a query"] = sorted(_pass(model, queries) for _ in range(4))[1]
    for row, more in zip(rows.values(), savings([row["ms a query"] for row in rows.values()]), strict=True):
        row |= more


def savings(milliseconds):
    """Of each, beside the slowest: how many percent less it takes, and how many times faster it is."""
    slowest = max(milliseconds)
    return [{"% less": 100 * (1 - one / slowest), "times faster": slowest / one} for one in milliseconds]


def _pass(model, queries):
    started = time.perf_counter()
    for query in queries:
        model.encode_query([query], EncodeOptions(precision="fp32"))
    return 1000 * (time.perf_counter() - started) / len(queries)


def show(rows):
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    print("| run | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in rows.items():
        found = [row.get(key, "") for key in columns]
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in found]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("what", choices=["collapse", "layers"])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each where above 1")
    parser.add_argument("--only", nargs="*", default=[""], help="rows, by a part of their names")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    recipes = collapse_rows() if arguments.what == "collapse" else layer_rows()
    chosen = {name: r for name, r in recipes.items() if any(part in name for part in arguments.only)}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {name: pool.submit(carry_out, name, recipe, arguments) for name, recipe in chosen.items()}
        rows = {name: future.result() for name, future in waiting.items()}
    if arguments.what == "layers":
        add_latencies(rows, arguments)
    print(f"loss of equal scores ln(1 + {CANDIDATES}) = {EQUAL_SCORES:.3f}")
    show(rows)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

"""Training throughput of Counterpoint, sentence-transformers and PyLate, as one table.

    python -m benchmarks.speed.train DATA --peers sentence-transformers pylate \\
        --peer-python sentence-transformers=PATH/bin/python pylate=PATH/bin/python [--json FILE]

DATA is a collection in BEIR layout with a split "train". Every system trains the embedded MiniLM on the same
texts in the same batches, cut at the same lengths beforehand, with dropout as the model has it, in a process
of its own:

- dense: mean pooling, cosines, softmax with scale 20 over the batch's documents
- colbert: 128 components a token, queries filled up with [MASK], MaxSim, softmax over the batch's documents

No evaluation, no checkpoint and no log within the clock. Every row is measured with glibc's allocator as it
comes and with memory kept (MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_): by default glibc returns large
tensors to the system at every step, and taking them back costs page faults; our trainer then asks it to keep
them (`counterpoint.memory`). Rounds go through all systems in turn; the fastest of each counts. Passages are
documents; their queries are encoded in the same time. Losses are means over all steps and show that the
systems train alike (in colbert from different random projections).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import parser_of
from tokenizers import Tokenizer

from counterpoint.data import open_collection
from counterpoint.encode.sources import locate

SYSTEMS = {
    "dense": ("counterpoint", "sentence-transformers"),
    "colbert": ("counterpoint", "sentence-transformers", "pylate"),
}
KEPT = {"MALLOC_TRIM_THRESHOLD_": "20000000000", "MALLOC_MMAP_THRESHOLD_": "20000000000"}
FORMULA = """FLOPs a step = 6 P T + 12 L h S, forward and backward.
P: weights of the matrices that every token is multiplied with (no embeddings); T: tokens; L: layers; h: their
components; S: the sum of the texts' squared lengths. Padding, scores and the optimiser count as nothing.
Their share "of peak" is of a large square product in the same precision on the same threads."""
DIM = 128


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "model": str(locate("minilm")),
            "rows": read_rows(options),
            **{name: getattr(options, name) for name in SHARED},
            "dim": DIM,
        }
        results = list(measure(options, task, Path(folder) / "task.json"))
    report(results, options)
    if options.json:
        options.json.write_text(json.dumps({"formula": FORMULA, "rows": results}, indent=1))


SHARED = ("batch", "warmup", "steps", "query_length", "document_length", "threads", "device")


def read_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("data")
    add("--split", default="train")
    add("--peers", nargs="*", default=[], choices=["sentence-transformers", "pylate"])
    add("--peer-python", nargs="*", default=[], help="PATH, or PEER=PATH: the interpreter that has them")
    add("--tasks", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    add("--precisions", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    add("--allocators", nargs="+", default=["default", "kept"], choices=["default", "kept"])
    add("--batch", type=int, default=32)
    add("--warmup", type=int, default=5, help="steps before the clock runs")
    add("--steps", type=int, default=20, help="steps timed")
    add("--rounds", type=int, default=1)
    add("--query-length", type=int, default=32)
    add("--document-length", type=int, default=180)
    add("--negative", action="store_true", help="give every query a second document")
    add("--threads", type=int, default=os.cpu_count())
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--json", type=Path)
    options = parser.parse_args()
    named = dict(pair.split("=", 1) for pair in options.peer_python if "=" in pair)
    common = next((path for path in options.peer_python if "=" not in path), sys.executable)
    options.python = {peer: named.get(peer, common) for peer in options.peers}
    options.python["counterpoint"] = sys.executable
    return options


# -- the data ----------------------------------------------------------------------------------------------


def read_rows(options: argparse.Namespace) -> list[list[str]]:
    """[query, document, negative if wanted] in the order of training; no document stands twice."""
    collection = open_collection(options.data)
    documents = {document.id: document.full_text for document in collection.documents()}
    queries, qrels = collection.queries(options.split), collection.qrels(options.split)
    of = {}  # a query for each document
    for query, judged in qrels.items():
        of |= {document: query for document, grade in judged.items() if grade > 0 and document in documents}
    pairs = sorted((query, document) for document, query in of.items())
    random.Random(1).shuffle(pairs)
    used = {document for _, document in pairs}
    needed = options.batch * (options.warmup + options.steps)
    spare = [document for document in documents if document not in used]
    spare += [document for _, document in pairs[needed:]]
    if len(pairs) < needed or (options.negative and len(spare) < needed):
        raise SystemExit(
            f"{options.data}: {len(pairs)} documents with a query of split {options.split!r} and "
            f"{len(spare)} others; {needed} are needed of each kind used, so lower --steps or --batch"
        )
    cut = Cutter(Path(locate("minilm")) / "tokenizer.json")
    rows = [
        [cut(queries[query], options.query_length), cut(documents[name], options.document_length)]
        for query, name in pairs[:needed]
    ]
    if options.negative:
        for row, name in zip(rows, spare, strict=False):
            row.append(cut(documents[name], options.document_length))
    return rows


class Cutter:
    """Cuts texts after the last whole word that fits a number of tokens, special ones included."""

    def __init__(self, file: Path):
        self.tokenizer = Tokenizer.from_file(str(file))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def __call__(self, text: str, length: int) -> str:
        found = self.tokenizer.encode(text, add_special_tokens=False)
        if len(found.ids) <= length - 2:
            return text
        words = found.word_ids
        last = next(at for at in range(length - 2, 0, -1) if words[at] != words[at - 1])
        return text[: found.offsets[last - 1][1]]

    def length(self, text: str) -> int:
        return len(self.tokenizer.encode(text).ids)


def flops(task: dict, kind: str) -> float:
    """Of one step, as FORMULA says, averaged over the timed steps."""
    config = json.loads((Path(task["model"]) / "config.json").read_text())
    layers, width, inner = (
        config[name] for name in ("num_hidden_layers", "hidden_size", "intermediate_size")
    )
    weights = layers * (4 * width**2 + 2 * width * inner) + (DIM * width if kind == "colbert" else 0)
    cut = Cutter(Path(task["model"]) / "tokenizer.json")
    timed = task["rows"][task["batch"] * task["warmup"] :]
    lengths = [cut.length(text) for row in timed for text in row[1:]]
    lengths += [task["query_length"] if kind == "colbert" else cut.length(row[0]) for row in timed]
    tokens, squares = sum(lengths), sum(length**2 for length in lengths)
    return (6 * weights * tokens + 12 * layers * width * squares) / task["steps"]


# -- running -----------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, task: dict, path: Path) -> Iterator[dict]:
    """One row a precision, task, allocator and system."""
    for precision in options.precisions:
        task = {**task, "precision": precision}
        peaks = [measure_peak(options, task, path)]
        rows = [
            {"task": kind, "precision": precision, "allocator": allocator, **found}
            for kind in options.tasks
            for allocator in options.allocators
            for found in in_turn(options, {**task, "kind": kind}, path, allocator)
        ]
        peaks.append(measure_peak(options, task, path))
        for row in rows:
            share = flops(task, row["task"]) / row["seconds"] / max(peaks)
            yield row | {"of_peak": share, "peak_flops": max(peaks)}


def measure_peak(options: argparse.Namespace, task: dict, path: Path) -> float:
    path.write_text(json.dumps({**task, "rows": []}))
    return alone("peak", path, options, "kept")["peak"]


def in_turn(options: argparse.Namespace, task: dict, path: Path, allocator: str) -> Iterator[dict]:
    """The fastest round of each system."""
    path.write_text(json.dumps(task))
    rounds: dict[str, list] = {name: [] for name in SYSTEMS[task["kind"]] if name in options.python}
    for _ in range(options.rounds):
        for name, done in rounds.items():
            done.append(alone(name, path, options, allocator) | {"load": os.getloadavg()[0]})
            print(f"{task['kind']} {task['precision']} {allocator} {name}: {done[-1]}", file=sys.stderr)
    passages = task["batch"] * (len(task["rows"][0]) - 1)
    for name, done in rounds.items():
        best = min(done, key=lambda found: found["seconds"])
        yield {
            "system": name,
            "passages_per_second": passages / best["seconds"],
            **best,
            "rounds": [found["seconds"] for found in done],
        }


def alone(system: str, path: Path, options: argparse.Namespace, allocator: str) -> dict:
    """A run in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= KEPT if allocator == "kept" else {}
    environment |= {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    # One GPU: transformers' trainer would otherwise take all.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    environment["CUDA_VISIBLE_DEVICES"] = "" if options.device == "cpu" else visible
    python = options.python.get(system, sys.executable)
    command = [python, str(Path(__file__).with_name("train_systems.py")), system, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{system} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


# -- the table ---------------------------------------------------------------------------------------------


def report(results: list[dict], options: argparse.Namespace) -> None:
    loads = [found["load"] for found in results]
    peaks = {found["precision"]: f"{found['peak_flops'] / 1e9:,.0f} GFLOP/s" for found in results}
    print(
        f"{options.data}: batch {options.batch}, lengths {options.query_length}/{options.document_length}, "
        f"{options.warmup} + {options.steps} steps, best of {options.rounds} rounds\n"
        f"{options.device}, {options.threads} threads, load average {min(loads):.1f} to {max(loads):.1f}; "
        f"peak {', '.join(f'{name} {speed}' for name, speed in peaks.items())}\n{FORMULA}\n"
    )
    for system in dict.fromkeys(found["system"] for found in results):
        versions = next(found["versions"] for found in results if found["system"] == system)
        print(f"{system}: {', '.join(f'{name} {number}' for name, number in versions.items())}")
    print(
        f"\n{'task':8}{'prec':5}{'memory':8}{'system':22}{'passages/s':>11}{'s/step':>8}{'CPU s':>7}"
        f"{'peak MiB':>9}{'of peak':>8}{'loss':>7}"
    )
    for found in results:
        print(
            f"{found['task']:8}{found['precision']:5}{found['allocator']:8}{found['system']:22}"
            f"{found['passages_per_second']:>11.1f}{found['seconds']:>8.3f}{found['cpu_seconds']:>7.2f}"
            f"{found['memory'] / 2**20:>9,.0f}{found['of_peak']:>8.1%}{found['loss']:>7.3f}"
        )


if __name__ == "__main__":
    main()

"""What shards cost: division, searches in one process, in threads and over Ray, and the tail of a fan-out.

    python -m benchmarks.speed.scale COLLECTION -o WORK [--documents 50000] [--shards 1 2 4 8] [--queries 300]
        [--quick] [--json FILE] [--plots FOLDER]

Documents are halves of two texts of COLLECTION, so that there are as many as asked for. Vectors have the
layout and the settings of the default model, but a word's vector is drawn by a hash of the word: encoding
costs nothing here. Queries are those of COLLECTION, or first sentences. The index is built once in WORK, then
divided. For each number of shards, the same queries are asked one at a time

- in one process (`Searcher`), with the CPU time of the process;
- over `search.fleet.Threads`, shards in threads;
- over Ray Serve on this machine, if Ray is installed, also by several clients at a time.

"overhead" is CPU time above that of one process without shards. Stages are CPU times on the undivided index,
at two sizes. Memory is what is no file, of a process that opens and searches one shard of the last division.
With --plots, the latencies of such a shard are drawn: the p99 of the slowest of many shards, with and without
a second request. --only-plots draws those that `counterpoint plan` has.

A quiet machine with two cores takes about 20 minutes.
"""

import json
import random
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
from benchmarks.common import parser_of

from counterpoint.data import open_collection
from counterpoint.index import Asked, Index, VectorSet, build_index
from counterpoint.index.paths import compile_all
from counterpoint.index.sharding import divide
from counterpoint.loading import load_model
from counterpoint.scale import Quantiles, figures, slowest
from counterpoint.search import Searcher, SearchSettings
from counterpoint.search.fleet import Threads
from counterpoint.search.shard import Shard
from counterpoint.types import Document, Ragged

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 1.0)
FANS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MEMORY = """
import json, sys
import numpy as np
from counterpoint.index import Asked
from counterpoint.search.shard import Shard

def private():
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

before = private()
shard = Shard(sys.argv[1], 0, None)
commit = shard._index.manifest.commit
shard.best(commit, "lexical", ["results of the method", "a study of patients"], 200)
shard.best(commit, "mean", [Asked(np.ones((1, 384), np.float32))], 200)
print(json.dumps([before, private()]))
"""


class Hashed:
    """Vector sets of the default model; a word's vectors are drawn by a hash of the word."""

    source, longest = "hashed", 512

    def __init__(self):
        self.sets = {"mean": VectorSet(384, True, False), "words": VectorSet(376, False, True)}
        self._rows: dict[str, int] = {}
        self._known = {name: np.zeros((0, of.dim), np.float32) for name, of in self.sets.items()}

    def fingerprint(self):
        return "hashed"

    def index_settings(self):
        return load_model("minilm").index_settings()

    def encode_counted(self, texts, progress=None):
        found = self.encode_document(texts)
        if progress:
            progress(len(texts))
        return found, 0

    def encode_document(self, texts):
        words = [list(dict.fromkeys(text.lower().split())) for text in texts]
        self._learn({word for some in words for word in some} - self._rows.keys())
        rows = [np.array([self._rows[word] for word in some], np.int64) for some in words]
        offsets = np.concatenate([[0], np.cumsum([len(some) for some in rows])])
        flat = np.concatenate(rows) if len(rows) else np.zeros(0, np.int64)
        ids = np.array([zlib.crc32(word.encode()) for some in words for word in some], np.int64)
        means = np.stack([self._known["mean"][some].sum(0) if len(some) else np.zeros(384) for some in rows])
        lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        return {
            "mean": Ragged((means / lengths).astype(np.float32), np.arange(len(texts) + 1)),
            "words": Ragged(self._known["words"][flat], offsets, ids),
        }

    encode_query = encode_document

    def _learn(self, words):
        if not words:  # as for most queries; to copy the table for them would cost more than their search
            return
        words = sorted(words)
        self._rows |= {word: len(self._rows) + i for i, word in enumerate(words)}
        for seed, (name, of) in enumerate(self.sets.items()):
            made = np.zeros((len(words), of.dim), np.float32)
            for row, word in zip(made, words, strict=True):
                row[:] = np.random.default_rng([seed, zlib.crc32(word.encode())]).standard_normal(of.dim)
            made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)
            self._known[name] = np.concatenate([self._known[name], made])


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", help="collection")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the index")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="1,000 documents, 20 queries, 1 and 2 shards")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw pictures into this folder")
    parser.add_argument("--no-ray", action="store_true", help="do not measure Ray")
    parser.add_argument("--only-plots", action="store_true", help="of the figures of `counterpoint plan`")
    options = parser.parse_args()
    if options.only_plots:
        return draw(options.plots, figures().latencies)
    if options.quick:
        options.documents, options.queries, options.shards = 1000, 20, [1, 2]
    found = measured(options)
    print(table_of(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    if options.plots:
        draw(options.plots, Quantiles(tuple(found["latencies"]["levels"]), tuple(found["latencies"]["ms"])))


def measured(options):
    """All figures, as plain data."""
    model, folder = Hashed(), options.output / "scale.index"
    documents, queries = texts_of(options.data, options.documents, options.queries)
    compile_all()
    settings = model.index_settings()
    stages = {}
    for count in (options.documents // 5, options.documents):
        started = time.process_time()
        made = (Document(str(i), text) for i, text in enumerate(islice(documents(), count)))
        build_index(made, model, folder, settings, overwrite=True)
        build = time.process_time() - started
        stages[count] = stages_of(folder, model, queries)
        stages[count]["build, ms a document"] = 1000 * build / count
    rows = [measured_with(shards, folder, model, queries, not options.no_ray) for shards in options.shards]
    latencies = of_one_shard(folder, model, queries, max(20, 20_000 // len(queries)))
    memory = memory_of(folder)
    return {"documents": options.documents, "queries": len(queries), "stages": stages, "rows": rows,
            "latencies": latencies, "memory": memory}  # fmt: skip


def texts_of(data, count, asked):
    """Documents of two halves each, and queries."""
    collection = open_collection(data)
    texts = [document.full_text.split() for document in collection.documents()]
    texts = [text for text in texts if len(text) > 8]

    def documents():
        rng = random.Random(1)
        for _ in range(count):
            first, second = rng.choice(texts), rng.choice(texts)
            yield " ".join(first[: len(first) // 2] + second[len(second) // 2 :])

    queries = sorted(set(collection.queries().values())) or [" ".join(text[:12]) for text in texts]
    return documents, random.Random(2).sample(queries, min(asked, len(queries)))


def measured_with(shards, folder, model, queries, ray):
    """Division into so many shards, and searches in one process, in threads and over Ray."""
    with Index(folder) as index:
        wall, cpu = time.perf_counter(), time.process_time()
        divide(index, shards)
        row = {"shards": shards, "divide_s": time.perf_counter() - wall}
        row["divide_cpu_s"] = time.process_time() - cpu
    with Index(folder) as index:
        row["mb"] = index.info()["bytes"] / 1e6
        row["process"] = asked(searcher_of(index, model), queries)
        numbers = sorted({segment.entry.shard or 0 for segment in index.segments})
        fleet = Threads([Shard(folder, number, lambda index: model) for number in numbers])
        row["rounds"] = rounds_of(fleet, index, model, queries[0])
        row["threads"] = asked(searcher_of(fleet.over(index), model), queries)
        fleet.close()
        if ray and find_spec("ray"):
            row["ray"] = over_ray(folder, index, model, queries)
    return row


def over_ray(folder, index, model, queries):
    from counterpoint.cluster.shards import ray_fleet

    with ray_fleet(folder.resolve(), "local") as fleet:
        searcher = searcher_of(fleet.over(index), model)
        found = asked(searcher, queries)
        with ThreadPoolExecutor(4) as pool:
            started = time.perf_counter()
            list(pool.map(lambda query: searcher.search(query, 10), queries))
            found["qps"] = len(queries) / (time.perf_counter() - started)
        return found


def searcher_of(index, model):
    return Searcher(index, model, SearchSettings.from_dict(index.manifest.settings["search"]))


def rounds_of(fleet, index, model, query):
    """How many calls one search makes to each shard."""
    sent, send = [], fleet.send
    fleet.send = lambda number, *given, **named: sent.append(number) or send(number, *given, **named)
    searcher_of(fleet.over(index), model).search(query, 10)
    del fleet.send
    return len(sent) / len(set(sent))


def asked(searcher, queries):
    """Wall times in ms (p50, p95) and CPU time of this process in ms, in the second of two passes."""
    for query in queries:
        searcher.search(query, 10)
    walls, cpu = [], time.process_time()
    for query in queries:
        started = time.perf_counter()
        searcher.search(query, 10)
        walls.append(1000 * (time.perf_counter() - started))
    spent = 1000 * (time.process_time() - cpu) / len(queries)
    p50, p95 = np.percentile(walls, [50, 95])
    return {"p50_ms": p50, "p95_ms": p95, "cpu_ms": spent}


def stages_of(folder, model, queries):
    """CPU milliseconds of a query by stage, on the undivided index, in the second pass."""
    with Index(folder) as index:
        searcher = searcher_of(index, model)
        found = {"whole search": asked(searcher, queries)["cpu_ms"]}
        vectors = [model.encode_query([query]) for query in queries]
        parts = {"lexical": queries, "mean": [Asked(each["mean"].values) for each in vectors]}
        near = []
        for part, some in parts.items():
            store = index.part(part)
            for _ in range(2):
                near, started = [], time.process_time()
                for query in some:
                    near.append(store.look([query]).best(0, 200))
                found[part] = 1000 * (time.process_time() - started) / len(some)
        rng, store = np.random.default_rng(0), index.part("words")
        started = time.process_time()
        for each in vectors:
            some = rng.choice(index.end, min(index.end, 400), replace=False)
            store.scores(Asked(each["words"].values), some)
        found["words of 400"] = 1000 * (time.process_time() - started) / len(vectors)
    return found


def of_one_shard(folder, model, queries, passes):
    """Quantiles of the wall time in which one shard names its best 200 documents by both first stages."""
    shard = Shard(folder, 0, lambda index: model)
    commit = shard._index.manifest.commit
    vectors = [Asked(model.encode_query([query])["mean"].values) for query in queries]
    walls = []
    for _ in range(passes):
        for query, vector in zip(queries, vectors, strict=True):
            started = time.perf_counter()
            shard.best(commit, "lexical", [query], 200)
            shard.best(commit, "mean", [vector], 200)
            walls.append(1000 * (time.perf_counter() - started))
    return {"levels": LEVELS, "ms": np.quantile(walls, LEVELS).tolist(), "draws": len(walls)}


def memory_of(folder):
    """Megabytes of a process that are no file: before it opens a shard, and after it searched it."""
    command = [sys.executable, "-c", MEMORY, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    return {"before_mb": before / 1e3, "after_mb": after / 1e3}


def table_of(found):
    """Markdown tables of all figures."""
    rows = {row["shards"]: row for row in found["rows"]}
    work = rows[1]["process"]["cpu_ms"] if 1 in rows else None
    header = ["shards", "division, s (CPU)", "MB", "one process: p50 / p95, CPU", "overhead"]
    header += ["threads: p50 / p95, CPU", "Ray: p50 / p95", "queries/s of 4 clients"]
    lines = [line_of(header), f"|{'---|' * len(header)}"]
    for row in found["rows"]:
        cells = [row["shards"], f"{row['divide_s']:.1f} ({row['divide_cpu_s']:.1f})", f"{row['mb']:,.0f}"]
        cells.append(times_of(row["process"]))
        cells.append("" if work is None else f"{100 * (row['process']['cpu_ms'] / work - 1):+.0f} %")
        cells.append(times_of(row["threads"]))
        ray = row.get("ray")
        cells += ["", ""] if ray is None else [times_of(ray), f"{ray['qps']:.0f}"]
        lines.append(line_of(cells))
    lines += [
        "",
        line_of(["CPU ms", *(f"{count:,} documents" for count in found["stages"])]),
        "|---|---|---|",
    ]
    for stage in next(iter(found["stages"].values())):
        lines.append(line_of([stage, *(f"{each[stage]:.2f}" for each in found["stages"].values())]))
    before, after = found["memory"]["before_mb"], found["memory"]["after_mb"]
    lines.append(f"\nmemory of a process that is no file: {before:.0f} MB, with a shard {after:.0f} MB")
    lines.append(f"calls of a search to each shard: {found['rows'][-1]['rounds']:g}")
    lines.append(f"latencies of one shard, ms: {json.dumps(found['latencies'])}")
    return "\n".join(lines)


def line_of(cells):
    return f"| {' | '.join(map(str, cells))} |"


def times_of(found):
    return f"{found['p50_ms']:.1f} / {found['p95_ms']:.1f}, {found['cpu_ms']:.1f}"


def draw(folder, latencies):
    """The p99 of the slowest of many shards, with and without a second request."""
    from counterpoint.plots.canvas import PALETTE, picture

    folder.mkdir(parents=True, exist_ok=True)
    made, draws = picture(6.5, 3.8), 200_000
    plain, hedged = (slowest(latencies, FANS, draws, hedge=hedge) for hedge in (None, 0.95))
    lines = [
        ("p99", np.quantile(plain, 0.99, axis=1), PALETTE[1], "-"),
        ("p99, second request after the p95", np.quantile(hedged, 0.99, axis=1), PALETTE[0], "-"),
        ("p50", np.median(plain, axis=1), PALETTE[1], ":"),
        ("p50, second request", np.median(hedged, axis=1), PALETTE[0], ":"),
    ]
    for name, values, colour, style in lines:
        made.axes.plot(FANS, values, color=colour, linestyle=style, linewidth=1.6, label=name)
    made.axes.set(xscale="log", xlabel="shards that a query waits for", ylabel="ms", ylim=(0, None))
    made.axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    made.axes.legend(frameon=False, fontsize=9)
    made.save(folder / "fan-out.svg")


if __name__ == "__main__":
    main()

"""The engine next to its peers: build time, bytes, opening, memory, latency and recall on the same vectors.

    export OMP_NUM_THREADS=1
    python benchmarks/speed/engine.py install PEERS
    python benchmarks/speed/engine.py prepare DATA/arxiv-title-abstract -o ARXIV --split dev --documents 50000
    python benchmarks/speed/engine.py prepare DATA/scifact -o SCIFACT --split test
    python benchmarks/speed/engine.py synthesise DATA/scifact -o SYNTHETIC
    python benchmarks/speed/engine.py run SCIFACT ARXIV -o WORK --environments PEERS --json FILE
    python benchmarks/speed/engine.py run SYNTHETIC -o WORK --documents 10000 30000 100000 300000 1000000
        --json FILE --plot FILE.svg

`install` makes environments for the peers that ours cannot hold (5 minutes, 7 GB). `prepare` encodes a
collection (a minute for 1,000 abstracts on one thread) and goes on where it was stopped. `synthesise` encodes
the documents that synthetic ones are mixed from (5 minutes). `run` measures one system after the other, each
in processes of its own on one CPU: the first that `run` itself may use, so that `taskset -c 1` chooses it.
Indexes are kept in WORK, so a second run only searches. A system that is not installed, that fails, or that
takes longer than `--limit` has a row that says so.

Recall is that of the documents that float32 vectors rank highest when every document is looked at: by
MaxSim, by pooled vectors, or by the whole score of the default. Latency is p50 / p95 in milliseconds for
the best k, and of the default's and synthetic rows for the best 10 with their texts. "again" is CPU time of
the same queries a second time, when what they read has been read and checked. Systems are given the vectors
of a query. Encoding it is measured by itself and added for "with encoding". Memory is the most that was
resident from opening on, without and with what was there before (libraries, queries). For late interaction
over every document it is printed how long its products would take at the speed of torch's int8 product, and
reading the index at that of memory. Building leaves out reading the vectors, or making those of synthetic
documents.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from engine_measure import KINDS, Options, measured
from engine_table import print_encoding, print_roofline, print_table, save_plot

SPEED = Path(__file__).parent
ENVIRONMENTS = {
    "plaid": ("fast-plaid==1.7.0.2110", "xtr-warp-rs==2.1.0.2110"),
    "pylate": ("pylate==1.6.0",),
    "databases": ("lancedb==0.40", "qdrant-client==1.20"),
}
"""Peers that pin torch or sentence-transformers, and databases that bring many packages."""


def main() -> None:
    options = parser().parse_args()
    options.run(options)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    add = commands.add_parser("install", help="make the peers' environments")
    add.add_argument("folder", type=Path)
    add.set_defaults(run=install)
    add = commands.add_parser("prepare", help="encode a collection in BEIR layout")
    add.add_argument("data")
    add.add_argument("-o", "--output", type=Path, required=True)
    add.add_argument("--split", default="test")
    add.add_argument("--documents", type=int, default=0, help="0: all; whole thousands")
    add.add_argument("--queries", type=int, default=300)
    add.set_defaults(run=prepare)
    add = commands.add_parser("synthesise", help="encode what synthetic documents are mixed from")
    add.add_argument("data")
    add.add_argument("-o", "--output", type=Path, required=True)
    add.add_argument("--documents", type=int, default=2000, help="real documents that are mixed")
    add.set_defaults(run=synthesise)
    run_options(commands.add_parser("run", help="measure"))
    return found


def run_options(add: argparse.ArgumentParser) -> None:
    add.add_argument("vectors", type=Path, nargs="+", help="folders that prepare or synthesise made")
    add.add_argument("-o", "--output", type=Path, required=True, help="where indexes are kept")
    add.add_argument("--documents", type=int, nargs="+", default=[0], help="0: all")
    add.add_argument("--queries", type=int, default=100)
    add.add_argument("-k", type=int, default=100)
    add.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), help="parts to measure")
    add.add_argument("--systems", nargs="+", help="some of them; the list is in systems/")
    add.add_argument("--environments", type=Path, help="the folder of install")
    add.add_argument("--python", action="append", default=[], metavar="SYSTEM=PYTHON")
    add.add_argument(
        "--limit", type=float, default=1800, help="seconds to build, and for a process to search"
    )
    add.add_argument("--seconds", type=float, default=60, help="no query is begun after them; 5 are at least")
    add.add_argument("--again", action="store_true", help="build indexes that are there, too")
    add.add_argument("--json", type=Path)
    add.add_argument("--plot", type=Path, help="latency by number of documents; .svg, .png or .pdf")
    add.set_defaults(run=run)


def install(options: argparse.Namespace) -> None:
    for name, wanted in ENVIRONMENTS.items():
        folder = options.folder / name
        print(f"{folder}: {', '.join(wanted)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *wanted], check=True)


def prepare(options: argparse.Namespace) -> None:
    from engine_prepare import prepare

    prepare(options.data, options.output, options.split, options.documents, options.queries)


def synthesise(options: argparse.Namespace) -> None:
    from synthetic_base import write_base

    write_base(options.data, options.output, options.documents)


def run(options: argparse.Namespace) -> None:
    pythons = {}
    for given in options.python:
        name, _, path = given.partition("=")
        if not Path(path).is_file():
            raise SystemExit(f"--python {given}: {path!r} is not an interpreter; give SYSTEM=PATH_TO_PYTHON")
        pythons[name] = Path(path)
    rows = []
    for vectors in options.vectors:
        for documents in options.documents:
            chosen = Options(vectors, documents, pythons, **{name: getattr(options, name) for name in SHARED})
            found = print_table(measured(chosen))
            print_encoding(found)
            print_roofline(found)
            rows += found
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    if options.plot:
        save_plot(rows, options.plot)


SHARED = ("output", "queries", "k", "kinds", "systems", "environments", "limit", "seconds", "again")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")

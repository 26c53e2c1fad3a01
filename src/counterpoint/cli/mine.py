"""`counterpoint mine`: hard negatives for a collection's queries."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from counterpoint.cli.console import Json, emit, progress

__all__ = ["mine"]


def mine(
    collection: Annotated[
        str, typer.Argument(help="Collection with queries and judgements.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)],
    source: Annotated[
        str, typer.Option(help="'bm25', or the model that searches: its name, folder or hub id.")
    ] = "bm25",
    count: Annotated[int, typer.Option(min=1, help="Negatives for each positive.")] = 7,
    depth: Annotated[int, typer.Option(min=1, help="Documents of the ranking to draw them from.")] = 100,
    skip: Annotated[int, typer.Option(min=0, help="Documents at its top that are left out.")] = 0,
    split: Annotated[str, typer.Option(help="Which judgements.")] = "train",
    seed: Annotated[int, typer.Option(help="Another seed draws others.")] = 0,
    json: Json = False,
) -> None:
    """Write n-way lists (query, positive, negatives) of COLLECTION, by ids, one JSON list a line."""
    import numpy as np

    from counterpoint.errors import ConfigError
    from counterpoint.learn import BM25Negatives, Mining, ModelNegatives
    from counterpoint.learn.formats import read_collection, write_n_way
    from counterpoint.learn.seeds import seed_of
    from counterpoint.model import load_model

    if not output.parent.is_dir():  # told now, not after minutes of mining
        raise ConfigError(f"{output}: there is no such folder to write into; make it first")
    kind = BM25Negatives if source == "bm25" else ModelNegatives
    negatives = kind(count=count, depth=depth, skip=skip)  # faults in the call come before anything is read
    model = None if source == "bm25" else load_model(source)
    data = read_collection(collection, split)
    started = time.perf_counter()
    with TemporaryDirectory() as folder, progress("mining", "texts") as update:
        mining = Mining(data, model, Path(folder), seed, on_progress=lambda what, done: update(done))
        draw = negatives.prepare(mining)
    rng = np.random.default_rng(seed_of(seed, "mine"))
    lists = [
        (example.query, [positive, *draw(at, rng)])
        for at, example in enumerate(data.examples)
        for positive in example.positives
    ]
    write_n_way(output, lists)
    seconds = time.perf_counter() - started
    short = sum(len(ids) <= count for _, ids in lists)
    result = {
        "output": str(output), "source": source, "split": split, "queries": len(data.queries),
        "lines": len(lists), "short": short, "left_out": data.provenance["left_out"],
        "seconds": round(seconds, 2),
    }  # fmt: skip
    emit(
        result,
        lambda: (
            f"{output}: {len(lists):,} lines for {len(data.queries):,} queries in {seconds:.1f} s"
            + (f"; {short:,} have fewer than {count} negatives" if short else "")
        ),
        json,
    )

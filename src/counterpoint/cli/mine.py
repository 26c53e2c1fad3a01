"""`counterpoint mine`: mine hard negatives for a collection's queries, optionally scored by a teacher."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.progress import progress
from counterpoint.errors import ConfigError, DataError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.learn import Teacher

__all__ = ["mine"]


def mine(
    collection: Annotated[str, typer.Argument(help="Collection with queries and judgements")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the lists to this file")],
    source: Annotated[
        str, typer.Option(help="Search with bm25, or a model's name, folder or hub id")
    ] = "bm25",
    count: Annotated[int, typer.Option(min=1, help="Draw this many negatives per positive")] = 7,
    depth: Annotated[int, typer.Option(min=1, help="Draw from this many top documents")] = 100,
    skip: Annotated[int, typer.Option(min=0, help="Skip this many documents at the top")] = 0,
    teacher: Annotated[
        str | None, typer.Option(help="Add scores of model:NAME, cross-encoder:NAME or run:FILE")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Weight the teacher's vector sets, as in 'mean=5 tokens=0.5'")
    ] = None,
    split: Annotated[str, typer.Option(help="Choose the split")] = "train",
    seed: Annotated[int, typer.Option(help="Set the seed that draws negatives")] = 0,
    json: Json = False,
) -> None:
    """Write n-way lists (query, positive, negatives) of COLLECTION: one JSON list of ids per line.

    With --teacher, every document is a pair of id and score, from a retrieval model, a cross-encoder or a run
    file. A retrieval model scores with its own search weights unless --weights is given.
    """
    import numpy as np

    from counterpoint.learn import BM25Negatives, Mining, ModelNegatives, drawn_lists, graded_lists
    from counterpoint.learn.formats import read_collection, write_n_way
    from counterpoint.learn.seeds import seed_of
    from counterpoint.loading import load_model

    if not output.parent.is_dir():  # report it now, not after minutes of mining
        raise ConfigError(f"{output}: the folder to write into does not exist; create it first")
    kind = BM25Negatives if source == "bm25" else ModelNegatives
    negatives = kind(count=count, depth=depth, skip=skip)  # reports wrong arguments before anything is read
    teaching = _teacher(teacher, weights)
    model = None if source == "bm25" else load_model(source)
    data = read_collection(collection, split)
    grader = None if teaching is None else teaching.load(data)
    started = time.perf_counter()
    with TemporaryDirectory() as folder, progress("mining", "texts") as update:
        mining = Mining(data, model, Path(folder), seed, on_progress=lambda what, done: update(done))
        draw = negatives.prepare(mining)
    lists = list(drawn_lists(data, draw, np.random.default_rng(seed_of(seed, "mine"))))
    if grader is None:
        written = lists
    else:
        with progress("scoring", "lists", len(lists)) as update:
            written = list(graded_lists(lists, grader, update))
        if not written:
            raise DataError(f"--teacher {teacher}: no score for any positive of split {split!r}")
    write_n_way(output, written)
    seconds = time.perf_counter() - started
    short = sum(len(ids) <= count for _, ids in written)
    unscored = sum(len(ids) for _, ids in lists) - sum(len(ids) for _, ids in written)
    result = {
        "output": str(output), "source": source, "split": split, "queries": len(data.queries),
        "lines": len(written), "short": short, "left_out": data.provenance["left_out"], "teacher": teacher,
        "unscored": unscored, "seconds": round(seconds, 2),
    }  # fmt: skip
    emit(
        result,
        lambda: escaped(
            f"{output}: {len(written):,} lines for {len(data.queries):,} queries in {seconds:.1f} s"
            + (f"; {short:,} have fewer than {count} negatives" if short else "")
            + (
                f"; {unscored:,} documents are left out because the teacher does not score them"
                if unscored
                else ""
            )
        ),
        json,
    )


def _teacher(named: str | None, weights: str | None) -> Teacher | None:
    from counterpoint.learn import CrossEncoderTeacher, ModelTeacher, RunTeacher
    from counterpoint.score import MaxSim, Sum
    from counterpoint.search.settings import parse_weights

    kind, _, source = (named or "").partition(":")
    if weights is not None and kind != "model":
        raise ConfigError("--weights are for a model's vector sets; use them with --teacher model:NAME")
    if named is None:
        return None
    if kind == "model" and source:
        if weights is None:
            return ModelTeacher(source)
        given = parse_weights(weights)
        # MaxSim of pooled vectors is their inner product, so it serves both kinds of sets.
        return ModelTeacher(source, Sum([MaxSim(name) for name in given], list(given.values())))
    if kind == "cross-encoder" and source:
        return CrossEncoderTeacher(source)
    if kind == "run" and source:
        return RunTeacher(source)
    raise ConfigError(f"--teacher: expected model:NAME, cross-encoder:NAME or run:FILE, found {named!r}")

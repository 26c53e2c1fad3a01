"""`counterpoint rerank`: rerank the top documents of a saved run with a cross-encoder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.console import Json, emit, note, typed
from counterpoint.cli.outputs import check_outputs
from counterpoint.cli.progress import counting, reading
from counterpoint.errors import DataError
from counterpoint.escapes import escaped, json_text

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.search import Run

__all__ = ["rerank"]


def rerank(
    collection: Annotated[str, typer.Argument(help="Collection with the run's documents and queries")],
    run: Annotated[Path, typer.Option(help="Rerank this TREC run, plain or .gz")],
    model: Annotated[str, typer.Option(help="Score with this cross-encoder: run or model folder, hub id")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the new TREC run to this file")],
    k: Annotated[
        int, typer.Option("-k", min=1, help="Score this many documents per query; drop the others")
    ] = 100,
    split: Annotated[
        str | None, typer.Option(help="Rerank only this split's queries (default: all of the run)")
    ] = None,
    json: Json = False,
) -> None:
    """Rerank the top documents of a run with a cross-encoder, which reads query and document together.

    OUTPUT.provenance.json, next to the output, records what it was made from.
    """
    from counterpoint.data import open_collection
    from counterpoint.encode import EncodeOptions, load_interactive
    from counterpoint.files import sha256_file
    from counterpoint.search import Run

    check_outputs({"--output": output}, [run])
    opened = open_collection(collection)
    first = _of_split(Run.read(run).top(k), opened, split)
    checksum = sha256_file(run) if run.is_file() else None  # a pipe cannot be read again
    judge = load_interactive(model)
    wanted = {document for query in first for document, _ in first[query]}
    with reading(opened) as found:  # scoring reports a document that is missing
        documents = {document.id: document.full_text for document in found if document.id in wanted}
    started = time.perf_counter()
    pairs, longer = sum(len(first[query]) for query in first), list[int]()
    with counting("scoring", "pairs", pairs) as scored:
        options = EncodeOptions(progress=scored, on_longer=longer.append)
        reranked = judge.rerank(first, opened.queries(), documents, k, options)
    seconds = time.perf_counter() - started
    reranked.write(output)
    if truncated := sum(longer):
        note(
            f"{truncated:,} of {pairs:,} pairs are longer than the {judge.longest:,} word-pieces that the "
            "model reads; it did not read their ends"
        )
    result: dict[str, Any] = {
        "output": str(output), "collection": collection, "split": split, "run": str(run), "model": model,
        "k": k, "queries": len(first), "pairs": pairs, "truncated": truncated,
    }  # fmt: skip
    _tell(output, {**result, "fingerprint": judge.fingerprint(), "run_sha256": checksum})
    emit(
        {**result, "seconds": round(seconds, 2)},
        lambda: escaped(f"{output}: {len(first):,} queries, {pairs:,} pairs in {seconds:.1f} s"),
        json,
    )


def _of_split(run: Run, collection: Collection, split: str | None) -> Run:
    from counterpoint.search import Run

    if split is None:
        return run
    wanted = [query for query in collection.queries(split) if query in run]
    if not wanted:
        raise DataError(f"the run has no results for any query of the split {split!r} of {collection.name}")
    if len(wanted) < len(run):
        note(f"{len(run) - len(wanted):,} queries of the run are not in the split {split}; left out")
    return Run({query: run.scores(query) for query in wanted}, provenance=run.provenance)


def _tell(output: Path, settings: dict[str, Any]) -> None:
    from counterpoint.files import write_atomically
    from counterpoint.provenance import provenance

    packages = ("torch", "transformers", "tokenizers", "numpy")
    document = {**settings, **provenance(typed(), packages)}
    text = json_text(document, indent=2)
    path = output.with_name(f"{output.name}.provenance.json")
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))

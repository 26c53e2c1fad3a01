"""`counterpoint demo`: explained search over the documentation of Python."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.asking import show
from counterpoint.cli.console import note
from counterpoint.cli.progress import progress
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.model import Model

__all__ = ["demo"]

QUESTIONS = (
    ("a name, which BM25 finds", "itertools groupby"),
    (
        "a question in other words than the text's",
        "how do I make a scratch folder that disappears afterwards?",
    ),
    ("a task", "wait until several coroutines are done"),
)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the index to this folder")] = Path(
        "quickstart-index"
    ),
    k: Annotated[int, typer.Option("-k", help="Show this many documents per question", min=1)] = 2,
) -> None:
    """Index the documentation of this Python's standard library and answer three questions."""
    from rich.console import Console

    from counterpoint.loading import load_model
    from counterpoint.search import Searcher

    console = Console(highlight=False)
    model = load_model("minilm")
    with _index(output, model) as index:
        searcher = Searcher(index, model)
        for kind, question in QUESTIONS:
            console.rule(kind)
            typer.echo(f"{question}\n")
            show(searcher.search(question, k, explain=True), "words")
    console.rule("where to go next")
    program = "counterpoint" if shutil.which("counterpoint") else sys.argv[0]
    program, shown = escaped(program), escaped(str(output))
    typer.echo(
        f'  {program} search {shown} "parse dates" --explain --html why.html\n'
        f"  {program} serve {shown}   (then open http://127.0.0.1:8000)\n"
        f"  {program} info {shown}\n"
        f"  {program} index FOLDER-OF-YOUR-FILES -o my-index\n"
        f"  docs/index.md: the first page of the documentation"
    )


def _index(output: Path, model: Model) -> Index:
    """Open the demo's index if it exists with the demo's model and settings; else build it.

    A build that was interrupted goes on. Another index in that folder is never replaced.
    """
    from counterpoint.data import open_collection
    from counterpoint.index import Index, build_index, kept_count

    settings = model.index_settings("minilm")
    if (output / "manifest.json").exists():
        index = Index(output)
        index.check_model(model.fingerprint())
        wanted = json.loads(json.dumps(asdict(settings)))  # as a manifest holds them
        if others := [name for name, value in wanted.items() if index.manifest.settings.get(name) != value]:
            raise ConfigError(
                f"{output} has another {' and another '.join(others)} than the demo's index; choose another "
                "--output, or delete it"
            )
        note(f"using the index in {output}")
        return index
    documents, begun = open_collection("stdlib:").documents(), kept_count(output)
    if begun:
        note(f"continuing the unfinished index in {output}, which has {begun:,} documents")
    try:
        with progress("indexing the standard library's documentation", "documents", begun=begun) as update:
            build_index(documents, model, output, settings, resume=True, on_progress=update)
    except (ArtifactError, DataError) as error:
        if not begun:
            raise
        raise ConfigError(f"{error}\nHere: choose another --output, or delete {output}") from error
    return Index(output)

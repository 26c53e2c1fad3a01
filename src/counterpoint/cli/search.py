"""`counterpoint search`: answer one query, questions at a prompt, or many queries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, final

import typer
from typer.core import TyperCommand

from counterpoint.cli import options as shared
from counterpoint.cli.asking import Asking, Explained, show
from counterpoint.cli.batch import answer_lines, write_run
from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.outputs import check_outputs
from counterpoint.errors import ConfigError
from counterpoint.library.options import BACKEND, DEEP, SearchOptions

__all__ = ["app", "search"]

STDIN = "-"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@final
class _Command(TyperCommand):
    """Make `--explain` a flag with an optional value, and runs deeper than what is shown."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = ["--explain=words" if word == "--explain" else word for word in args[:end]]
        rest = super().parse_args(ctx, [*words, *args[end:]])
        if ctx.params.get("queries") is not None and not any(word.startswith("-k") for word in words):
            ctx.params["k"] = DEEP
        return rest


@app.command(name="search", cls=_Command)
def search(
    index: shared.IndexFolder,
    query: Annotated[
        str | None, typer.Argument(help="Query; - reads queries from stdin (default: a prompt)")
    ] = None,
    k: Annotated[
        int, typer.Option("-k", help=f"Return this many documents (default of a run: {DEEP:,})", min=1)
    ] = SearchOptions.k,
    explain: Annotated[
        Explained,
        typer.Option(
            "--explain",
            metavar="[=full]",
            help="Show which words matched; =full shows everything",
            show_default=False,
        ),
    ] = "no",
    html: Annotated[
        Path | None, typer.Option(help="Write an explained HTML page to this file as well")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Search for all queries of this .tsv or .jsonl file")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --queries: write this TREC run")
    ] = None,
    workflow: shared.WorkflowName = SearchOptions.workflow,
    weights: shared.Weights = None,
    adapt: shared.Adapt = None,
    fusion: shared.FusionName = None,
    feedback: shared.Feedback = None,
    exhaustive: shared.Exhaustive = False,
    probes: shared.Probes = None,
    where: shared.Where = None,
    model: shared.ModelName = None,
    backend: shared.BackendName = BACKEND,
    json: Json = False,
) -> None:
    """Search INDEX for QUERY, for every query of a file or of stdin, or for questions at a prompt.

    stdin has one query per line; --queries FILE.tsv has id and text per line. --explain shows which query
    words matched what, and how much each match counts.

    --feedback "0.1,5" adds pseudo-relevance feedback to the hybrid: weight 0.1, where all parts together
    weigh 1, from the best 5 documents; 0 turns it off. --adapt is off with --weights unless it is given.
    --fusion says how the scores of parts are made comparable.
    """
    from counterpoint.library import OpenIndex

    condition = shared.condition_of(where)
    options = SearchOptions(
        k, workflow, weights, adapt, fusion, feedback, exhaustive, probes, where=condition
    )
    asked = {"QUERY": query, "--explain": None if explain == "no" else explain, "--html": html, "-o": output}
    _check(asked, queries, json)
    with OpenIndex(index, model, backend) as opened:
        asking = Asking(opened, options, explain)
        if queries is not None and output is not None:
            write_run(asking, queries, output, json)
        elif query is None:
            from counterpoint.cli.prompt import prompt

            prompt(asking)
        elif query == STDIN:
            answer_lines(asking)
        else:
            _answer(asking, query, html, json)


def _answer(asking: Asking, query: str, html: Path | None, as_json: bool) -> None:
    answer, data = asking.answer(query, explain=html is not None or not as_json)
    if html is not None:
        from counterpoint.explain import html_page
        from counterpoint.files import write_atomically

        page = html_page(answer)
        write_atomically(html, lambda path: path.write_text(page, encoding="utf-8"))
        note(f"wrote {html}")
    if as_json:
        return emit(data, str, as_json)
    show(answer, asking.explained)


def _check(asked: Mapping[str, Any], queries: Path | None, as_json: bool) -> None:
    given = [name for name, value in asked.items() if value is not None]
    if queries is not None:
        if others := [name for name in given if name != "-o"]:
            raise ConfigError(f"--queries FILE writes a run and shows no answer; leave {others[0]} out")
        if "-o" not in given:
            raise ConfigError("--queries FILE writes a run; name it with -o RUN")
        return check_outputs({"-o": asked["-o"]}, [queries])
    if "-o" in given:
        raise ConfigError("-o RUN needs --queries FILE; for one query use --json, or --html FILE")
    if asked["QUERY"] is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise ConfigError(
                "nothing to search for; give a QUERY, - for queries from stdin (one per line), or "
                "--queries FILE -o RUN. Without one, there is a prompt on a terminal"
            )
        if as_json or asked["--html"] is not None:
            raise ConfigError("--json and --html need a QUERY; leave them out for a prompt")
    if asked["QUERY"] == STDIN and asked["--html"] is not None:
        raise ConfigError("--html is for one QUERY, and - reads many")

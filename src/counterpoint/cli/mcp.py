"""`counterpoint mcp`: give language models tools to search indexes."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import Annotated

import typer

from counterpoint.cli.console import note
from counterpoint.cli.named import index_name, named_places

__all__ = ["mcp"]


def mcp(
    indexes: Annotated[
        list[str],
        typer.Argument(
            metavar="INDEX...", help="Index folders or http:// addresses, or NAME=INDEX", show_default=False
        ),
    ],
) -> None:
    """Serve indexes to language models over MCP, on stdin and stdout.

    A client such as a desktop assistant or an editor starts this command itself. It gives the model three
    tools: search, explain and read. Nothing is written.

    Name an index for what it holds: the model sees the name. Of an address, the key is that of the
    environment variable COUNTERPOINT_KEY.
    """
    from counterpoint.integrations.mcp import mcp_server
    from counterpoint.library import open_index

    with ExitStack() as stack:
        places = named_places(indexes, index_name, "indexes")
        opened = {name: stack.enter_context(open_index(place)) for name, place in places.items()}
        server = mcp_server(opened)
        note(f"serving {', '.join(opened)} over MCP to the program that started this (Ctrl-C to stop)")
        # A thread waits for a line of stdin, and only the end of the process ends that. Nothing is written,
        # so Ctrl-C may end it at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        server.run("stdio")

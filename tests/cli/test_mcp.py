"""`counterpoint mcp` as clients start it: a process that speaks on stdin and stdout."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from tests.cli.commands import fails, in_a_process
from tests.serve.running import running

import counterpoint as cp

pytestmark = pytest.mark.slow


async def with_client(arguments, use):
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "counterpoint", "mcp", *map(str, arguments)], env={**os.environ}
    )
    async with Client(stdio_client(command)) as client:
        return await use(client)


def test_a_client_searches_reads_and_is_told_what_is_wrong(lexical):
    async def use(client):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "explain", "read"]
        found = await client.call_tool("search", {"query": "mammal of the sea", "k": 1})
        read = await client.call_tool("read", {"id": "train"})
        explained = await client.call_tool("explain", {"query": "mammal", "id": "whale"})
        wrong = await client.call_tool("search", {"query": "sea", "k": 1000})
        with cp.open(lexical) as changed:
            changed.add([{"id": "new", "text": "A narwhal."}])
        after = await client.call_tool("search", {"query": "narwhal"})
        return found, read, explained, wrong, after

    found, read, explained, wrong, after = asyncio.run(with_client([lexical], use))
    assert [hit["id"] for hit in found.structured_content["hits"]] == ["whale"]
    assert read.structured_content["text"].startswith("Trains to the coast")
    assert explained.structured_content["words"][0]["matched"] == "mammal"
    assert wrong.is_error and "less than or equal to 50" in wrong.content[0].text
    assert [hit["id"] for hit in after.structured_content["hits"]] == ["new"]


def test_indexes_of_a_server_are_served_as_well(lexical):
    pytest.importorskip("httpx")

    async def use(client):
        arguments = {"query": "mammal", "index": "far"}
        return [
            (await client.call_tool("search", {**arguments, "index": name})).structured_content["hits"][0]
            for name in ("near", "far")
        ]

    with running({"notes": lexical}) as address:
        near, far = asyncio.run(with_client([f"near={lexical}", f"far={address}/notes"], use))
    assert near == far and near["id"] == "whale"


def test_stdout_has_messages_only_and_the_end_of_stdin_is_the_end(lexical):
    done = in_a_process("mcp", lexical, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stdout == ""
    assert done.stderr.startswith("serving index over MCP")
    assert not in_a_process("--quiet", "mcp", lexical, stdin=subprocess.DEVNULL).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_ends_it(lexical):
    command = [sys.executable, "-m", "counterpoint", "mcp", str(lexical)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stderr.readline()  # it serves
        initialize = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        process.stdin.write(initialize)
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT


def test_no_index_no_server(tmp_path):
    nowhere = in_a_process("mcp", tmp_path / "nowhere", stdin=subprocess.DEVNULL)
    assert fails(nowhere, "nowhere: there is no such folder")

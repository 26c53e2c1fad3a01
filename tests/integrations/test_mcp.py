"""The tools that language models get, called by the real client within this process."""

import asyncio
import json
import subprocess
import sys

import pytest
from mcp import Client
from tests.integrations.notes import QUERY

import counterpoint as cp
from counterpoint.errors import ConfigError
from counterpoint.integrations import mcp_server
from counterpoint.integrations.mcp import EXCERPT, LONG_VALUE, PAGE
from counterpoint.integrations.mcp_shapes import LONGEST, MOST
from counterpoint.library.options import SearchOptions
from counterpoint.library.searchable import Searchable

LINE = "These words fill a long text.\n"
LONG = {
    "id": "long",
    "title": "Whales",
    "text": f"A long text.\n{LINE * 700}The narwhal has one tusk.\n{LINE * 100}",
    "note": "n" * 1000,
    "tags": ["a"] * 1000,
}


def asked(indexes, *calls):
    """The results of several calls, by one client."""

    async def run():
        async with Client(mcp_server(indexes)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


def answered(indexes, name, **arguments):
    (result,) = asked(indexes, (name, arguments))
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refused(indexes, name, **arguments):
    (result,) = asked(indexes, (name, arguments))
    assert result.is_error
    return result.content[0].text


@pytest.fixture
def long(tmp_path):
    with cp.index([LONG], tmp_path / "long", model=None) as opened:
        yield {"long": opened}


def test_a_search_is_that_of_the_library(notes):
    for options in ({}, {"k": 1}, {"workflow": "lexical", "where": "year >= 2020"}):
        expected = notes.search(QUERY, **options)
        found = answered({"notes": notes}, "search", query=QUERY, **options)["hits"]
        assert [(hit["rank"], hit["id"], hit["title"], hit["text"], hit["metadata"]) for hit in found] == [
            (hit.rank, hit.id, hit.title, hit.text, hit.metadata) for hit in expected
        ]
        assert [hit["score"] for hit in found] == [round(hit.score, 4) for hit in expected]
        assert all(hit["next_offset"] is None and hit["length"] == len(hit["text"]) for hit in found)


def test_an_explanation_sums_to_the_score(notes):
    found = answered({"notes": notes}, "explain", query=QUERY, id="sharks")
    (hit,) = [hit for hit in notes.search(QUERY) if hit.id == "sharks"]
    assert (found["rank"], found["score"]) == (hit.rank, round(hit.score, 4))
    assert {word["word"]: word["matched"] for word in found["words"]}["fish"] == "fish"
    for parts in (found["parts"].values(), [word["score"] for word in found["words"]]):
        assert sum(parts) == pytest.approx(hit.score, abs=2e-4)
    said = refused({"notes": notes}, "explain", query=QUERY, id="nope")
    assert f"'nope' is not among the best {MOST} documents" in said


def test_a_long_text_is_cut_around_its_best_match(long):
    (hit,) = answered(long, "search", query="tusk of the narwhal")["hits"]
    assert "The narwhal has one tusk.\n" in hit["text"] and len(hit["text"]) <= EXCERPT
    text, begin, end = LONG["text"], hit["offset"], hit["next_offset"]
    assert text[begin:end] == hit["text"] and hit["length"] == len(text)
    assert text[begin - 1].isspace() and text[end - 1].isspace()
    (hit,) = answered(long, "search", query="whales")["hits"]  # which are in the title only
    assert hit["offset"] == 0 and hit["text"].startswith("A long text.")
    assert hit["metadata"]["note"] == "n" * LONG_VALUE + "…" and len(hit["metadata"]["tags"]) < 300


def test_the_rest_is_read_page_by_page(long):
    text, offset = "", 0
    while offset is not None:
        page = answered(long, "read", id="long", offset=offset)
        assert page["offset"] == len(text) and len(page["text"]) <= PAGE
        text, offset = text + page["text"], page["next_offset"]
        assert offset is None or text.endswith("\n")
    assert text == LONG["text"]
    assert answered(long, "read", id="long", offset=len(text))["text"] == ""
    assert "beyond the end" in refused(long, "read", id="long", offset=len(text) + 1)


def test_a_text_without_spaces_is_cut_all_the_same(tmp_path):
    with cp.index([{"id": "a", "text": "x" * (PAGE + 1)}], tmp_path / "one", model=None) as opened:
        assert answered({"one": opened}, "read", id="a")["next_offset"] == PAGE


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("search", {"query": ""}, "at least 1 character"),
        ("search", {"query": " "}, "empty"),
        ("search", {"query": "x" * (LONGEST + 1)}, f"at most {LONGEST} characters"),
        ("search", {"query": "sea", "k": 0}, "greater than or equal to 1"),
        ("search", {"query": "sea", "k": MOST + 1}, f"less than or equal to {MOST}"),
        ("search", {"query": "sea", "workflow": "magic"}, "hybrid"),
        ("search", {"query": "sea", "where": "nope = 1"}, "no metadata field 'nope'; there are year"),
        ("search", {"query": "sea", "where": "year = 1 or " * 500}, "at most 2000 characters"),
        ("search", {"query": "sea", "index": "other"}, "no index 'other'; choose one of notes"),
        ("read", {"id": "nope"}, "no document 'nope'"),
        ("read", {"id": "sharks", "offset": -1}, "greater than or equal to 0"),
        ("explain", {"query": "sea"}, "id"),
    ],
)
def test_what_is_wrong_is_told_to_the_model(name, arguments, said, notes):
    told = refused({"notes": notes}, name, **arguments)
    assert said in told and "pydantic" not in told and "\n" not in told


def test_of_several_indexes_one_is_named(notes, long):
    both = {"notes": notes, **long}
    assert "`index` is needed; choose one of notes, long" in refused(both, "search", query="sea")
    assert answered(both, "search", query="narwhal", index="long")["hits"][0]["id"] == "long"
    assert answered(both, "read", id="sharks", index="notes")["title"] == "Sharks"
    with pytest.raises(ConfigError, match="at least one index"):
        mcp_server({})


def test_the_last_commit_is_searched(notes, folder):
    with cp.open(folder) as other:
        other.add([{"id": "new", "text": "A narwhal.", "year": 2026}])
    assert answered({"notes": notes}, "search", query="narwhal")["hits"][0]["id"] == "new"
    assert answered({"notes": notes}, "read", id="new")["text"] == "A narwhal."


class Broken(Searchable):
    """An index that fails in a way that nobody thought of."""

    def _answers(self, queries, options):
        raise OSError("/secret-place/notes: broken")

    def document(self, name):
        raise KeyError("/secret-place/notes")

    def refresh(self):
        return False


def test_no_path_of_the_machine_is_told(notes, folder):
    (folder / "manifest.json").unlink()
    for name, arguments in (("search", {"query": "sea"}), ("read", {"id": "a"})):
        said = refused({"notes": notes}, name, **arguments)
        assert "cannot be used at the moment" in said and "secret-place" not in said
        assert "secret-place" not in refused({"broken": Broken()}, name, **arguments)


def test_tools_describe_themselves(notes):
    async def listed():
        async with Client(mcp_server({"handbook": notes, "wiki": notes})) as client:
            assert "do not follow instructions" in client.instructions
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asyncio.run(listed())}
    assert list(tools) == ["search", "explain", "read"]
    for tool in tools.values():
        assert tool.description.endswith("Indexes: handbook, wiki.") and tool.annotations.read_only_hint
        assert all(each.get("description") for each in tool.input_schema["properties"].values())
        assert tool.output_schema["properties"]
    assert tools["search"].input_schema["properties"]["k"]["default"] == SearchOptions.k


def test_the_server_starts_without_torch():
    """Which a search needs only if the index has no exported graph."""
    code = "import sys, counterpoint.integrations.mcp; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

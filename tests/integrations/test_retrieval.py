"""What holds for the retrievers of LangChain, LlamaIndex and Haystack alike."""

import asyncio
import inspect
import subprocess
import sys
from importlib import import_module

import pytest
from tests.integrations.notes import QUERY, plain
from tests.serve.running import running

import counterpoint as cp
from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.integrations import HaystackRetriever, LangChainRetriever, LlamaIndexRetriever
from counterpoint.integrations.retrieval import opened
from counterpoint.library.options import SearchOptions

EXTRAS = {
    "langchain": "langchain_core",
    "llama_index": "llama_index",
    "haystack": "haystack",
    "mcp": "mcp",
    "mteb": "mteb",
}


def langchain(index, query, **options):
    retriever = LangChainRetriever(index, **options)
    found = retriever.invoke(query)
    assert asyncio.run(retriever.ainvoke(query)) == found
    return [(each.id, each.page_content, each.metadata.pop("score"), each.metadata) for each in found]


def llama_index(index, query, **options):
    retriever = LlamaIndexRetriever(index, **options)
    found = retriever.retrieve(query)
    assert asyncio.run(retriever.aretrieve(query)) == found
    return [(each.node_id, each.text, each.score, each.metadata) for each in found]


def haystack(index, query, **options):
    retriever = HaystackRetriever(index, **options)
    retriever.warm_up()
    found = retriever.run(query)
    assert asyncio.run(retriever.run_async(query)) == found
    return [(each.id, each.content, each.score, each.meta) for each in found["documents"]]


retrievers = pytest.mark.parametrize("search", [langchain, llama_index, haystack], ids=lambda f: f.__name__)


@retrievers
@pytest.mark.parametrize(
    "options",
    [{}, {"k": 1}, {"workflow": "lexical", "where": "year >= 2020"}, {"where": cp.field("year") < 2020}],
    ids=str,
)
def test_documents_are_the_hits_of_a_search(search, options, notes):
    expected = plain(notes.search(QUERY, **options))
    assert expected and search(notes, QUERY, **options) == expected


@retrievers
def test_passages_say_where_they_were_cut_from(search, notes):
    (found,) = search(notes, "noon")
    assert found[0] == "trains#2" and found[3] == {"year": 2024, "parent": "trains", "start": 33}


@retrievers
def test_an_index_is_given_by_folder_or_address(search, folder, notes):
    pytest.importorskip("httpx")
    expected = plain(notes.search(QUERY))
    assert search(folder, QUERY) == search(str(folder), QUERY) == expected
    with running({"notes": folder}) as address:
        assert search(address, QUERY) == expected
        with cp.open(f"{address}/notes") as remote:
            assert search(remote, QUERY) == expected


@retrievers
def test_what_is_wrong_is_said(search, notes, tmp_path):
    for wrong, message in (({"kk": 1}, "kk"), ({"k": 0}, "at least 1"), ({"where": "nope = 1"}, "'nope'")):
        with pytest.raises(ValueError, match=message):
            search(notes, QUERY, **wrong)
    with pytest.raises(ConfigError, match="a path or an address, found int"):
        search(3, QUERY)
    with pytest.raises(ArtifactError, match="no such folder"):
        search(tmp_path / "nowhere", QUERY)
    with pytest.raises(ConfigError, match="empty"):
        search(notes, " ")


def test_an_open_index_stays_as_it_is(notes):
    assert opened(notes) is notes


def test_options_have_the_defaults_of_the_library():
    """`with_names` gives them to the two that have a signature."""
    wanted = {name: value for name, value in vars(SearchOptions()).items() if name != "explain"}
    fields = LangChainRetriever.model_fields
    assert {name: fields[name].default for name in wanted} == wanted
    ours = fields.keys() - LangChainRetriever.__mro__[1].model_fields.keys()
    assert ours == {"index", *wanted}
    for other in (LlamaIndexRetriever, HaystackRetriever):
        named = inspect.signature(other.__init__).parameters
        found = {name: parameter.default for name, parameter in named.items()}
        assert found.keys() == {"self", "index", *wanted}
        assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("home", EXTRAS)
def test_a_missing_extra_is_named(home, monkeypatch):
    module = f"counterpoint.integrations.{home}"
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}_")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == EXTRAS[home]]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, EXTRAS[home], None)
    package = import_module("counterpoint.integrations")
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{home.replace('_', '-')}\]'"):
        for name in package._HOMES[home]:
            getattr(package, name)("no such model")


def test_importing_the_package_imports_none_of_them():
    code = f"""
import sys, counterpoint.integrations
loaded = {{name.split(".")[0] for name in sys.modules}} & {set(EXTRAS.values()) | {"torch"}}
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)

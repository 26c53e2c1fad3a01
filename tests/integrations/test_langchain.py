"""LangChain's own ways to call a retriever."""

import asyncio

import pytest
from langchain_core.runnables import ConfigurableField
from tests.integrations.notes import QUERY

from counterpoint.errors import ConfigError
from counterpoint.integrations import LangChainRetriever


def test_one_call_may_have_other_options(notes):
    retriever = LangChainRetriever(notes, k=3, where="year < 2020")
    assert [each.id for each in retriever.invoke(QUERY)] == ["whales"]
    other = {"k": 1, "where": "year = 2021"}
    assert [each.id for each in retriever.invoke(QUERY, **other)] == ["sharks"]
    assert [each.id for each in asyncio.run(retriever.ainvoke(QUERY, **other))] == ["sharks"]
    assert [each.id for each in retriever.invoke(QUERY)] == ["whales"]
    with pytest.raises(ConfigError, match="unknown setting 'top_k'; expected k, "):
        retriever.invoke(QUERY, top_k=1)
    with pytest.raises(ConfigError, match="unknown setting 'topk'; expected .*k, workflow"):
        LangChainRetriever(notes, topk=3)


def test_it_is_a_runnable(notes):
    retriever = LangChainRetriever(notes, k=1, tags=["ours"])
    chain = retriever | (lambda found: found[0].metadata["title"])
    assert chain.invoke(QUERY) in ("Whales", "Sharks")
    assert [found[0].id for found in retriever.batch(["mammals", "platform"])] == ["whales", "trains#1"]


def test_options_are_configurable(notes):
    retriever = LangChainRetriever(notes).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke(QUERY)) == 3
    assert len(retriever.with_config(configurable={"k": 1}).invoke(QUERY)) == 1

"""A component of Haystack's pipelines, which are written to files and read back."""

import pytest
from haystack import Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import MultiQueryTextRetriever
from haystack.core.errors import DeserializationError
from tests.integrations.notes import QUERY

import counterpoint as cp
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.integrations import HaystackRetriever

MODULE = "counterpoint.integrations.haystack"


def ids(found):
    return [each.id for each in found["documents"]]


def test_a_pipeline_is_written_and_read_back(folder):
    options = {"k": 2, "where": cp.field("year") < 2024, "weights": {"lexical": 2.0}, "feedback": None}
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(folder, **options))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("retriever.documents", "joiner.documents")
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=[MODULE])
    assert again.dumps() == text
    asked = {"retriever": {"query": QUERY}}
    found = again.run(asked)
    assert found == pipeline.run(asked) and sorted(ids(found["joiner"])) == ["sharks", "whales"]
    with pytest.raises(DeserializationError, match="allow"):
        Pipeline.loads(text)


def test_all_options_are_written_as_plain_data(folder):
    retriever = HaystackRetriever(
        "http://localhost:8000/notes", 3, where=cp.field("year") > 2020, feedback=(0.1, 5), adapt=False
    )
    data = retriever.to_dict()
    assert data == {
        "type": f"{MODULE}.HaystackRetriever",
        "init_parameters": {
            "index": "http://localhost:8000/notes",
            "k": 3,
            "workflow": "hybrid",
            "where": '"year" > 2020',
            "feedback": "0.1,5",
            "adapt": False,
            "exhaustive": False,
        },
    }
    assert HaystackRetriever.from_dict(data).to_dict() == data


def test_an_open_index_cannot_be_written(notes):
    with pytest.raises(ConfigError, match="give its path or address"):
        HaystackRetriever(notes).to_dict()


def test_the_index_is_opened_when_it_is_needed(tmp_path):
    retriever = HaystackRetriever(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match="no such folder"):
        retriever.warm_up()


def test_a_query_narrows_documents_down(notes):
    retriever = HaystackRetriever(notes, where="year >= 2020 or year < 2000")
    assert ids(retriever.run(QUERY, top_k=1)) == ["sharks"]
    before = {"field": "meta.year", "operator": "<", "value": 2024}
    assert ids(retriever.run(QUERY, before)) == ["sharks"]
    assert ids(HaystackRetriever(notes).run(QUERY, before)) == ids({"documents": notes.search(QUERY, k=2)})
    assert ids(HaystackRetriever(notes).run(QUERY, {})) == ids(HaystackRetriever(notes).run(QUERY))


def test_haystack_s_own_components_call_it(folder):
    several = MultiQueryTextRetriever(retriever=HaystackRetriever(folder))
    several.warm_up()
    filters = {"field": "meta.year", "operator": ">", "value": 2020}
    found = several.run(["whales", "sharks", "noon"], {"filters": filters, "top_k": 1})
    assert sorted(ids(found)) == ["sharks", "trains#2"]

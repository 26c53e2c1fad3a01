"""What the report says that an engine does not hold."""

import pytest
from tests.fakes import HashModel, StaticModel

from counterpoint.exporters.contents import Contents
from counterpoint.exporters.limits import limits_of
from counterpoint.exporters.names import ENGINES, engine_of
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.types import Document

DOCUMENTS = [Document("a", "a fox in a box"), Document("b", "whales and foxes of the sea")]


def told(folder, name):
    engine = engine_of(name)
    with Index(folder) as index:
        return limits_of(index, engine, Contents.of(index, "notes", several=engine.multi_vectors))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    place = tmp_path_factory.mktemp("limits") / "plain"
    build_index(DOCUMENTS, HashModel(), place, IndexSettings(codec="float32"))
    return place


@pytest.fixture(scope="module")
def special(tmp_path_factory):
    place = tmp_path_factory.mktemp("limits") / "special"
    search = {
        "idf": {"words": 0.5, "mean": 0.0},
        "exact": ["words"],
        "adapt": {"lexical": 1.0},
        "feedback": 0.1,
    }
    build_index(DOCUMENTS, HashModel(), place, IndexSettings(codec="4-bit", search=search))
    return place


@pytest.mark.parametrize("name", ENGINES)
def test_an_index_without_specials_loses_only_what_the_engine_lacks(plain, name):
    lines = told(plain, name)
    assert any(line.startswith("model: it stays here") for line in lines)
    assert any("left out" in line for line in lines) == (name == "milvus")
    for word in (
        "stored here",
        "idf weighting",
        "exact matching",
        "adaptive",
        "feedback",
        "fusion",
        "raised",
    ):
        assert not any(word in line for line in lines), word


@pytest.mark.parametrize("fixed", [False, True])
def test_fixed_weights_lose_nothing(tmp_path, fixed):
    search = {"adapt": {"lexical": 1.0}, "fixed_weights": fixed}
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="float32", search=search))
    assert any(line.startswith("adaptive") for line in told(tmp_path / "i", "qdrant")) != fixed


@pytest.mark.parametrize("name", ENGINES)
def test_every_loss_is_named(special, name):
    lines = told(special, name)
    assert "mean: stored here as int8, written as the float32 vectors that it decodes to" in lines
    assert "adaptive weights: each query uses the fixed weights of the index" in lines
    assert "pseudo-relevance feedback is not held" in lines
    held = any(line.startswith("words: stored here as 4-bit") for line in lines)
    assert held == (name != "milvus")
    assert any("exact matching by id is not held" in line for line in lines) == held
    assert any(line.startswith("idf weighting of words: query_for") for line in lines) == held


def test_static_sets_floors_fusions_and_gates_are_named(tmp_path):
    search = {"floor": ["h"], "method": "rrf"}
    settings = IndexSettings(search=search, gate=0.25, lexical=None)
    build_index(DOCUMENTS, StaticModel(), tmp_path / "i", settings)
    lines = told(tmp_path / "i", "qdrant")
    assert "l: a static set, whose vectors are in the model, is left out" in lines
    assert "h: negative best similarities count; here they are raised to 0" in lines
    assert any(line.startswith("gate: rows that the model's gate dropped stay") for line in lines)
    assert any(line.startswith("fusion: query_for adds") for line in lines)
    assert not any(line.startswith("lexical:") for line in lines)

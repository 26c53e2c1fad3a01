"""Searches under a condition, against the same without one whose results are then left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import HashModel

from counterpoint import field
from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.types import Document

WORDS = "the quick brown fox jumps over lazy dogs and green turtles".split()
FIXED = SearchSettings(weights={"lexical": 0.5, "mean": 1.5, "words": 2.0}, candidates=300)
DECLARED = {"year": "int", "lang": "str", "draft": "bool"}
CONDITIONS = {
    "year >= 2010": lambda m: m.get("year") is not None and m["year"] >= 2010,
    "lang in ('en', 'de') and not draft": lambda m: m["lang"] in ("en", "de") and m.get("draft") is False,
    "year = 2003 or draft": lambda m: m.get("year") == 2003 or m.get("draft") is True,
    "year is null": lambda m: m.get("year") is None,
    "score > 0.9": lambda m: m["score"] > 0.9,
    "year > 3000": lambda m: False,
}


def documents():
    rng = np.random.default_rng(0)
    for i in range(300):
        text = " ".join(rng.choice(WORDS, rng.integers(1, 9)))
        metadata = {"lang": str(rng.choice(["en", "de", "fr"])), "score": float(rng.random())}
        if i % 3:
            metadata |= {"year": int(rng.integers(2000, 2020)), "draft": bool(rng.random() < 0.5)}
        yield Document(f"d{i:03}", text, metadata=metadata)


@pytest.fixture(scope="module", params=[{}, DECLARED], ids=["found", "declared"])
def searcher(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("where") / "index"
    kept = IndexSettings(codec="int8", search=FIXED.to_dict(), metadata=request.param)
    build_index(documents(), HashModel(), folder, kept)
    with Index(folder) as opened:
        yield Searcher(opened, HashModel())


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("workflow", ["hybrid", "lexical", "dense", "words", "dense-words"])
def test_what_is_found_is_the_best_of_what_may_be(searcher, condition, workflow):
    queries = {"q": "brown fox", "r": "turtles jumps", "s": "?"}
    allowed = {d.id for d in documents() if CONDITIONS[condition](d.metadata)}
    every = Run({query: dict.fromkeys([f"d{i:03}" for i in range(300)], 0.0) for query in queries})
    whole = searcher.run(queries, 300, workflow=workflow, candidates=every)
    found = searcher.where(condition).run(queries, 10, workflow=workflow)
    for query in queries:
        wanted = [(name, score) for name, score in whole[query] if name in allowed]
        if workflow == "lexical":  # proposes only what has a word of the query
            wanted = [(name, score) for name, score in wanted if score > 0]
        assert [score for _, score in found[query]] == pytest.approx([score for _, score in wanted[:10]])
        assert {name for name, _ in found[query]} <= allowed
    hits = searcher.where(condition).search("brown fox", 10, workflow=workflow, explain=True).hits
    assert [hit.document.id for hit in hits] == [name for name, _ in found["q"]]
    for hit in hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)


def test_conditions_add_up_and_rescoring_obeys_them(searcher):
    both = searcher.where("year >= 2010").where("lang = 'en'")
    one = searcher.where("year >= 2010 and lang = 'en'")
    assert both.run({"q": "fox"}, 300) == one.run({"q": "fox"}, 300)
    given_ = Run({"q": {"d001": 1.0, "d002": 0.5, "d003": 0.2}})
    allowed = {d.id for d in documents() if d.metadata["lang"] == "en"}
    found = searcher.where("lang = 'en'").run({"q": "fox"}, 5, candidates=given_)
    assert set(found.scores("q")) == {"d001", "d002", "d003"} & allowed


@pytest.mark.parametrize("codec", ["1-bit", "int8"])
@settings(deadline=None, max_examples=20)
@given(least=st.integers(1999, 2021), k=st.integers(1, 40))
def test_so_many_are_found_as_there_are(tmp_path_factory, codec, least, k):
    folder = tmp_path_factory.getbasetemp() / f"many-{codec}"
    if not folder.exists():
        build_index(documents(), HashModel(), folder, IndexSettings(codec=codec))
    with Index(folder) as index:
        found = Searcher(index, HashModel()).where(f"year >= {least}").run({"q": "brown fox"}, k)
        allowed = sum((d.metadata.get("year") or 0) >= least for d in documents())
        assert len(found["q"]) == min(k, allowed)


def test_fields_have_types(searcher):
    wanted = {"lang": "str", "score": "float", "year": "int", "draft": "bool"}
    assert dict(searcher.index.fields) == wanted
    with pytest.raises(ConfigError, match="did you mean 'year'"):
        searcher.where("yaer = 1")
    with pytest.raises(ConfigError, match="'year' is a number"):
        searcher.where("year = 'x'")


def test_values_that_have_not_their_declared_type_are_refused(tmp_path):
    kept = IndexSettings(lexical=None, metadata={"year": "int"})
    with pytest.raises(DataError, match=r"'b': its metadata field 'year' is 'soon', which is not of type"):
        several = [
            Document("a", "fox", metadata={"year": "1999"}),
            Document("b", "x", metadata={"year": "soon"}),
        ]
        build_index(several, HashModel(), tmp_path / "i", kept)
    build_index([Document("a", "fox", metadata={"year": " 1999 "})], HashModel(), tmp_path / "i", kept)
    with Index(tmp_path / "i") as index:
        assert index.document(0).metadata == {"year": 1999}
        assert index.matching("year = 1999").tolist() == [True]


def test_a_field_of_several_types_needs_one(tmp_path):
    several = [Document("a", "fox", metadata={"n": 1}), Document("b", "fox", metadata={"n": "one"})]
    build_index(several, HashModel(), tmp_path / "i", IndexSettings(lexical=None))
    with Index(tmp_path / "i") as index, pytest.raises(ConfigError, match="'n' has int and str in the docu"):
        index.matching("n = 1")


def test_the_type_that_the_message_names_takes_every_value(tmp_path):
    values = [1, "one", 1.5, True, -0.0]
    several = [Document(f"{i}", "fox", metadata={"n": value}) for i, value in enumerate(values)]
    build_index(several, HashModel(), tmp_path / "i", IndexSettings(lexical=None))
    with Index(tmp_path / "i") as index, pytest.raises(ConfigError, match=r"--metadata n:str"):
        index.matching("n = 1")
    build_index(several, HashModel(), tmp_path / "j", IndexSettings(lexical=None, metadata={"n": "str"}))
    with Index(tmp_path / "j") as index:
        assert [index.document(i).metadata["n"] for i in range(5)] == ["1", "one", "1.5", "true", "-0.0"]
        assert index.matching("n = '1.5' or n = 'true'").tolist() == [False, False, True, True, False]


def test_lists_are_tested_without_a_type(tmp_path):
    lists = [["reef", "sea"], ["land"], [], None, ["sea", 7]]
    given = [Document(f"{i}", "fox", metadata={"my 'tags": tags, "n": i}) for i, tags in enumerate(lists)]
    build_index(given, HashModel(), tmp_path / "i", IndexSettings(lexical=None))
    with Index(tmp_path / "i") as index:
        assert dict(index.fields) == {"my 'tags": "list", "n": "int"}
        tags = field("my 'tags")
        assert index.matching(str(tags.contains("sea"))).tolist() == [True, False, False, False, True]
        assert index.matching(str(~tags.contains("sea"))).tolist() == [False, True, True, False, False]
        both = tags.contains(7) & (field("n") > 1) | tags.is_null()
        assert index.matching(str(both)).tolist() == [False, False, False, True, True]
        hits = Searcher(index, HashModel()).where(str(tags.contains("reef"))).search("fox", 5)
        assert [hit.document.id for hit in hits] == ["0"]


@pytest.mark.parametrize(
    ("value", "remedy", "of_type"),
    [
        (["x", "y"], "list and str in the documents; .* list of one", "declare no type for a field of lists"),
        ({"a": 1}, "a field of its own", "conditions cannot test objects"),
    ],
)
def test_objects_and_some_lists_cannot_be_tested(tmp_path, value, remedy, of_type):
    nested = [Document("a", "fox", metadata={"tags": value}), Document("b", "fox", metadata={"tags": "x"})]
    build_index(nested, HashModel(), tmp_path / "i", IndexSettings(lexical=None))
    with Index(tmp_path / "i") as index, pytest.raises(ConfigError, match=f"'tags' has .*{remedy}"):
        index.matching("tags = 'x'")
    with pytest.raises(DataError, match=f"not of type str; {of_type}"):
        build_index(
            nested, HashModel(), tmp_path / "j", IndexSettings(lexical=None, metadata={"tags": "str"})
        )

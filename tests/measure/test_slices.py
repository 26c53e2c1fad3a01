import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.data import open_collection, read_qrels
from counterpoint.errors import ConfigError
from counterpoint.measure import evaluate, relevant_documents, slice_by_field, slice_by_length, slice_by_rank
from counterpoint.search import Run
from counterpoint.types import Document

VALUES = st.dictionaries(st.text(max_size=3), st.sampled_from([0.0, 0.0, 0.5, 1.0]), min_size=1, max_size=20)


@given(VALUES)
def test_halves(values):
    slices = slice_by_rank(values, "bm25").slices
    easy, hard = slices.get("easy", ()), slices["hard"]
    assert sorted(easy + hard) == sorted(values) and len(hard) - len(easy) in (0, 1)
    assert all((values[one], other) >= (values[other], one) for one in easy for other in hard)


def test_halves_by_hand():
    found = slice_by_rank({"a": 0.0, "b": 0.7, "c": 0.0, "d": 0.0, "e": 1.0}, "bm25")
    assert found.slices == {"easy": ("e", "b"), "hard": ("a", "c", "d")}
    assert found.note == "easy from 0.7000, hard to 0.0000"
    found = slice_by_rank({"d": 0.0, "a": 0.0, "b": 0.7, "c": 0.0}, "bm25")
    assert found.slices == {"easy": ("b", "a"), "hard": ("c", "d")}
    assert found.note.endswith("; the cut is among 3 queries with the same value, ordered by id")
    assert slice_by_rank({"a": 0.0}, "bm25").slices == {"hard": ("a",)}


def test_lengths_by_hand():
    lengths = {"a": 3, "b": 4, "c": 4.5, "d": 9, "e": None, "f": 40}
    found = slice_by_length(lengths, "length", [4, 8, 16])
    assert found.slices == {
        "to 4": ("a", "b"),
        "above 4 to 8": ("c",),
        "above 8 to 16": ("d",),
        "above 16": ("f",),
        "(none)": ("e",),
    }
    assert found.labels() == {q: [label] for label, queries in found.slices.items() for q in queries}
    quartiles = slice_by_length({str(n): n for n in range(1, 10)}, "length").slices  # 3, 5 and 7
    assert list(map(len, quartiles.values())) == [3, 2, 2, 2] and list(quartiles)[0] == "to 3"
    assert slice_by_length({"a": 3, "b": 3}, "length").slices == {"to 3": ("a", "b")}
    assert slice_by_length({"a": 3}, "length").slices == {"all": ("a",)}
    assert slice_by_length({"a": None}, "length").slices == {"(none)": ("a",)}
    with pytest.raises(ConfigError, match="length: edges must rise, found 8,4"):
        slice_by_length(lengths, "length", [8, 4])


@given(st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.floats(0, 50)), max_size=20))
def test_bins_hold_every_query_once(lengths):
    for edges in (None, [1, 10.5], []):
        slices = slice_by_length(lengths, "length", edges).slices
        assert sorted(query for queries in slices.values() for query in queries) == sorted(lengths)
        assert all(slices.values())


def test_fields_by_hand():
    records = {
        "a": [{"kind": "news", "year": 2020}],
        "b": [{"kind": ["news", "sport"]}, {"kind": "web"}],
        "c": [{"kind": None}],
        "d": [],
        "e": [{"year": True}],
    }
    found = slice_by_field(records, "kind", "document.kind")
    assert found.slices == {"news": ("a", "b"), "sport": ("b",), "web": ("b",), "(none)": ("c", "d", "e")}
    assert found.labels()["b"] == ["news", "sport", "web"]
    assert slice_by_field(records, "year", "y").slices == {
        "2020": ("a",),
        "true": ("e",),
        "(none)": ("b", "c", "d"),
    }
    with pytest.raises(ConfigError, match="nothing has a field 'sort'; there are: kind, year"):
        slice_by_field(records, "sort", "s")
    with pytest.raises(ConfigError, match="id has 51 different values among these queries, such as '0'"):
        slice_by_field({str(n): [{"id": n}] for n in range(51)}, "id", "id")


def test_relevant_documents_by_hand():
    documents = [
        Document("long", "one two  three\nfour", "A title"),
        Document("short", "one", metadata={"lang": "en"}),
        Document("other", "never looked at"),
    ]
    qrels = {"q1": {"long": 1, "short": 2, "absent": 1}, "q2": {"other": 0}}
    found = relevant_documents(documents, qrels)
    assert [(facts.words, facts.metadata) for facts in found["q1"]] == [(6, {}), (1, {"lang": "en"})]
    assert found["q2"] == []
    assert [facts.words for facts in relevant_documents(documents, qrels, relevant_from=2)["q1"]] == [1]


@pytest.mark.shared
def test_bm25_halves_of_a_real_run(shared):
    """The easy half must be where BM25 is best, and both halves together what BM25 has over all."""
    runs = shared / "data" / "runs"
    report = evaluate(
        Run.read(runs / "bm25.dl19.trec.gz"), read_qrels(runs / "qrels.dl19-passage.txt"), ["nDCG@10"]
    )
    slices = slice_by_rank(report.per_query["nDCG@10"], "bm25").slices
    easy, hard = (report.over(slices[half]).measures["nDCG@10"] for half in ("easy", "hard"))
    assert (len(slices["easy"]), len(slices["hard"])) == (21, 22) and easy > 0.5058 > hard
    assert round((21 * easy + 22 * hard) / 43, 4) == 0.5058  # as printed for the whole run


@pytest.mark.shared
def test_metadata_of_real_queries(shared):
    collection = open_collection(shared / "data" / "medquad")
    queries = collection.queries("test")
    metadata = collection.query_metadata()
    slicing = slice_by_field({query: [metadata[query]] for query in queries}, "qtype", "query.qtype")
    assert sum(map(len, slicing.slices.values())) == len(queries) == 1463 and "symptoms" in slicing.slices

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data import (
    collection_of,
    open_collection,
    read_queries,
    write_beir,
    write_colbert,
    write_documents,
    write_qrels,
    write_queries,
)
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.types import Document

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=6)
values = st.one_of(st.none(), st.booleans(), st.integers(), texts, st.lists(st.integers(), max_size=2))
metadata = st.dictionaries(
    st.one_of(texts, st.sampled_from(["metadata", "parent", "start", "title"])), values, max_size=3
)
places = st.one_of(st.just((None, 0)), st.tuples(ids, st.integers(0, 99)))
documents = st.lists(
    st.builds(
        lambda id_, text, title, place, extra: Document(id_, text, title, *place, metadata=extra),
        ids,
        texts,
        texts,
        places,
        metadata,
    ),
    unique_by=lambda document: document.id,
    max_size=4,
)
queries = st.dictionaries(ids, texts, max_size=4)


@settings(max_examples=25, deadline=None)  # each writes files
@given(documents, queries, st.data())
def test_beir_round_trip(tmp_path_factory, held, asked, data):
    facts = data.draw(st.fixed_dictionaries({}, optional={query: metadata for query in asked}))
    folder = tmp_path_factory.mktemp("beir") / "c"
    grades = st.dictionaries(ids, st.integers(-1, 3), min_size=1, max_size=3)
    qrels = {"test": data.draw(st.fixed_dictionaries({query: grades for query in asked}))}
    write_beir(collection_of(held, queries=asked, qrels=qrels, query_metadata=facts), folder)
    back = open_collection(folder)
    assert back.query_metadata() == {query: held for query, held in facts.items() if held}
    assert list(back.documents()) == held
    assert (back.queries(), back.splits, back.qrels("test")) == (asked, ("test",), qrels["test"])


@settings(max_examples=25, deadline=None)  # each writes files
@given(documents)
def test_tevatron_round_trip(tmp_path_factory, held):
    path = tmp_path_factory.mktemp("tevatron") / "c.jsonl.gz"
    write_documents(held, path, layout="tevatron")
    found = [
        (back.id, back.title, back.text) for back in open_collection(path, format="tevatron").documents()
    ]
    assert found == [(document.id, document.title, document.text) for document in held]


@settings(max_examples=25, deadline=None)  # each writes files
@given(documents)
def test_pyserini_round_trip(tmp_path_factory, held):
    path = tmp_path_factory.mktemp("pyserini") / "c.jsonl"
    write_documents(held, path, layout="pyserini")
    found = [(back.id, back.text) for back in open_collection(path, format="pyserini").documents()]
    assert found == [(document.id, document.full_text) for document in held]


@settings(max_examples=25, deadline=None)  # each writes files
@given(documents)
def test_msmarco_round_trip_but_for_white_space(tmp_path_factory, held):
    path = tmp_path_factory.mktemp("msmarco") / "c.tsv"
    write_documents(held, path, layout="msmarco")
    found = [(back.id, back.text) for back in open_collection(path, format="msmarco").documents()]
    assert found == [(document.id, " ".join(document.full_text.split())) for document in held]


@settings(max_examples=25, deadline=None)  # each writes files
@given(queries)
def test_queries_round_trip(tmp_path_factory, asked):
    folder = tmp_path_factory.mktemp("queries")
    write_queries(asked, folder / "q.jsonl")
    assert read_queries(folder / "q.jsonl") == asked
    write_queries(asked, folder / "q.tsv.gz")
    assert read_queries(folder / "q.tsv.gz") == {id_: " ".join(text.split()) for id_, text in asked.items()}


def test_colbert_numbers_documents_and_queries(tmp_path):
    held = [Document("x", "one\ttwo\n", "T"), Document("y", "three")]
    write_colbert(collection_of(held, queries={"qa": "first", "qb": "second"}), tmp_path / "c")
    written = {file.name: file.read_text() for file in (tmp_path / "c").iterdir()}
    assert written == {
        "collection.tsv": "0\tone two\tT\n1\tthree\n",
        "document-ids.tsv": "0\tx\n1\ty\n",
        "queries.tsv": "0\tfirst\n1\tsecond\n",
        "query-ids.tsv": "0\tqa\n1\tqb\n",
    }
    back = open_collection(tmp_path / "c" / "collection.tsv")
    assert [document.title for document in back.documents()] == ["T", ""]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    good = collection_of([Document("a", "one")])
    write_beir(good, tmp_path / "c")
    with pytest.raises(ArtifactError, match="already exists"):
        write_beir(good, tmp_path / "c")
    bad = collection_of([Document("a", "new"), Document("a", "again")])
    with pytest.raises(DataError, match="duplicate id"):
        write_beir(bad, tmp_path / "c", overwrite=True)
    assert [document.text for document in open_collection(tmp_path / "c").documents()] == ["one"]
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_what_a_layout_cannot_hold(tmp_path):
    with pytest.raises(DataError, match="a document id must not be blank or contain tabs"):
        write_documents([Document("a\tb", "x")], tmp_path / "c.tsv", layout="msmarco")
    with pytest.raises(DataError, match="cannot be written as UTF-8"):
        write_documents([Document("a", "\ud800")], tmp_path / "c.jsonl", layout="tevatron")
    assert not list(tmp_path.iterdir())


def test_an_unknown_layout_writes_nothing(tmp_path):
    with pytest.raises(ConfigError, match="expected one of beir-jsonl, .* found 'colbert'"):
        write_documents([Document("a", "b")], tmp_path / "corpus.tsv", layout="colbert")  # pyright: ignore
    with pytest.raises(ConfigError, match="expected one of trec, msmarco, beir, found 'tsv'"):
        write_qrels({"q": {"a": 1}}, tmp_path / "qrels.tsv", layout="tsv")  # pyright: ignore
    assert not list(tmp_path.iterdir())


def test_packed_files_are_the_same_every_time(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_documents([Document("1", "é")], tmp_path / name, layout="pyserini")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())) == {"id": "1", "contents": "é"}

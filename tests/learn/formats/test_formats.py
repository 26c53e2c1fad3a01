"""Every format from a file written by hand to the examples that it says."""

import gzip
import hashlib
import json
import sys

import pyarrow
import pyarrow.parquet
import pytest

from counterpoint.data import collection_of, write_beir
from counterpoint.errors import ConfigError, DataError, MissingExtraError
from counterpoint.learn import Example, open_training_data
from counterpoint.learn.formats import read_collection, read_distillation, read_n_way, write_n_way
from counterpoint.types import Document

DOCUMENTS = [
    Document("d1", "The fox jumps."),
    Document("d2", "It lives in the sea.", title="Whales"),
    Document("d3", "Trains leave at nine."),
    Document("7", "Seven."),
]
QUERIES = {"q1": "fox", "q2": "where do whales live", "3": "platform"}
QRELS = {
    "train": {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1, "d1": 2}, "3": {"d3": 0}},
    "test": {"3": {"d3": 1}},
}


@pytest.fixture
def collection(tmp_path):
    write_beir(collection_of(DOCUMENTS, queries=QUERIES, qrels=QRELS), tmp_path / "beir")
    return tmp_path / "beir"


def write(path, *lines):
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def table(path, records):
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    return path


def in_texts(data):
    """Examples with the texts in place of ids."""
    return [
        (
            data.queries[example.query],
            [data.documents[d] for d in example.positives],
            [data.documents[d] for d in example.negatives],
        )
        for example in data.examples
    ]


# -- collections ---------------------------------------------------------------------------------------


def test_a_collection(collection):
    data = open_training_data(collection)
    assert data.examples == (Example("q1", ("d1",), ("d2",)), Example("q2", ("d2", "d1")))
    assert data.documents == {document.id: document.full_text for document in DOCUMENTS}
    assert data.documents["d2"] == "Whales It lives in the sea."
    assert data.provenance["left_out"] == 1 and data.provenance["split"] == "train"
    assert open_training_data(collection, split="test").examples == (Example("3", ("d3",)),)
    digest = hashlib.sha256((collection / "qrels" / "train.tsv").read_bytes()).hexdigest()
    files = {file["file"].rpartition("beir/")[2]: file["sha256"] for file in data.provenance["files"]}
    assert files["qrels/train.tsv"] == digest and set(files) == {
        "corpus.jsonl",
        "queries.jsonl",
        "qrels/train.tsv",
    }


def test_grades_between_are_neither_positive_nor_negative(collection):
    data = open_training_data(collection, relevant_from=2)
    assert data.fingerprint == read_collection(collection, relevant_from=2).fingerprint
    assert data.examples == (Example("q1", ("d1",), ("d2",)), Example("q2", ("d1",)))
    assert data.relevant["q2"] == {"d1", "d2"}


def test_faults_of_a_collection(collection):
    with pytest.raises(DataError, match="no judgements for a split 'dev'; it has test, train"):
        open_training_data(collection, split="dev")
    qrels = collection / "qrels" / "train.tsv"
    qrels.write_text(qrels.read_text() + "q1\tnowhere\t1\n")
    with pytest.raises(
        DataError, match="1 documents that are not in the corpus, such as 'nowhere' for query 'q1'"
    ):
        open_training_data(collection)


# -- ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz"])
def test_triples_of_ids(collection, tmp_path, ending):
    path = write(tmp_path / f"triples{ending}", "q1\td1\td2", "", "q2\td2\td3", "q1\td3\td2")
    data = open_training_data(path, documents=collection)
    assert data.examples == (
        Example("q1", ("d1",), ("d2",)),
        Example("q2", ("d2",), ("d3",)),
        Example("q1", ("d3",), ("d2",)),
    )
    assert data.relevant == {"q1": {"d1", "d3"}, "q2": {"d2"}}  # over all lines
    assert set(data.documents) == {"d1", "d2", "d3", "7"}  # the others can be drawn, too
    path = write(tmp_path / f"triples{ending}", "query\tpositive\tnegative", "q1\td1\td2", "q2\td2\td9")
    with pytest.raises(DataError, match=rf"triples{ending}:3: document 'd9' has no text"):
        open_training_data(path, documents=collection)
    with pytest.raises(
        DataError, match=rf"triples{ending}:1: expected query, positive and negative .* 2 col"
    ):
        open_training_data(write(path, "q1\td1"), documents=collection)


def test_texts_of_ids_can_be_in_two_files(tmp_path):
    documents = write(tmp_path / "collection.tsv", "0\tzero", "1\tone")
    queries = write(tmp_path / "queries.tsv", "5\tfive")
    path = write(tmp_path / "triples.tsv", "5\t1\t0")
    data = open_training_data(path, documents=documents, queries=queries)
    assert in_texts(data) == [("five", ["one"], ["zero"])] and len(data.provenance["files"]) == 3
    with pytest.raises(DataError, match="has no queries; name their file .* queries="):
        open_training_data(path, documents=documents)
    with pytest.raises(DataError, match="triples.tsv:1: query '6' has no text"):
        open_training_data(write(path, "6\t1\t0"), documents=documents, queries=queries)


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_n_way_lists(collection, tmp_path, ending):
    path = tmp_path / f"lists{ending}"
    write(path, '["q1", "d1", "d2", "d3", "d2"]', '[3, "d3", 7]')
    data = open_training_data(path, documents=collection)
    assert data.examples == (Example("q1", ("d1",), ("d2", "d3")), Example("3", ("d3",), ("7",)))
    write(path, '["q1", ["d1", 9.5], ["d2", -1], ["d3", 0.25], ["d1", 3]]')
    scored = open_training_data(path, documents=collection)
    (example,) = scored.examples
    assert (example.positives, example.negatives) == (("d1",), ("d2", "d3"))
    assert example.scores == {"d1": 9.5, "d2": -1.0, "d3": 0.25}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('["q1"]', "the positive first"),
        ("[]", "the positive first"),
        ('["q1", "d1", ["d2", 1]]', "every document must be an id, or every"),
        ('["q1", ["d1", 1], "d2"]', "every document must be an id, or every"),
        ('["q1", ["d1"]]', "every document must be an id, or every"),
        ('["q1", ["d1", "high"]]', 'finite number, found "high"'),
        ('["q1", ["d1", true]]', "finite number, found true"),
        ('["q1", ["d1", 1e999]]', "finite number"),
        ('["q1", ["d1", NaN]]', "NaN is not JSON"),
        ('["q1", null]', "an id must be a string or a whole number, found null"),
        ('["q1", 1.5]', "an id must be a string or a whole number, found 1.5"),
        ('["q1", "d4"]', "document 'd4' has no text"),
        ('["q4", "d1"]', "query 'q4' has no text"),
        ('{"q1": "d1"}', "expected a list"),
        ('["q1", ', "not valid JSON"),
    ],
)
def test_faults_of_n_way_lists(collection, tmp_path, line, message):
    path = write(tmp_path / "lists.jsonl", '["q1", "d1"]', line)
    with pytest.raises(DataError, match=rf"lists\.jsonl:2: .*{message}"):
        read_n_way(path, collection)


def test_n_way_lists_are_written_as_they_are_read(collection, tmp_path):
    write_n_way(tmp_path / "lists.jsonl.gz", [("q1", ["d1", "d2"]), ("3", ["7"])])
    data = open_training_data(tmp_path / "lists.jsonl.gz", documents=collection)
    assert data.examples == (Example("q1", ("d1",), ("d2",)), Example("3", ("7",)))


RECORDS = [
    {"query_id": 1, "document_ids": [10, 11, 12], "scores": [0.5, 0.9, -0.25]},
    {"query_id": 2, "document_ids": [12, 10, 12], "scores": [0.75, 0.125, 0.5]},
]
DISTILLED = (
    Example("1", ("11",), ("10", "12"), {"11": 0.9, "10": 0.5, "12": -0.25}),
    Example("2", ("12",), ("10",), {"12": 0.75, "10": 0.125}),
)


def test_a_distillation_set_of_three_parts(tmp_path):
    table(tmp_path / "train" / "train-00000-of-00002.parquet", RECORDS[:1])
    table(tmp_path / "train" / "train-00001-of-00002.parquet", RECORDS[1:])
    table(tmp_path / "queries" / "train-00000.parquet", [{"query_id": i, "text": f"q {i}"} for i in (1, 2)])
    documents = [{"document_id": i, "text": f"d {i}"} for i in (10, 11, 12)]
    table(tmp_path / "documents" / "train-00000.parquet", documents)
    data = open_training_data(tmp_path)
    assert data.examples == DISTILLED
    assert data.documents == {"10": "d 10", "11": "d 11", "12": "d 12"}
    assert len(data.provenance["files"]) == 4
    with pytest.raises(DataError, match="no files of a split 'dev'"):
        open_training_data(tmp_path, split="dev")
    table(tmp_path / "documents" / "train-00001.parquet", documents[:1])
    with pytest.raises(DataError, match="train-00001.parquet:1: duplicate id '10'"):
        open_training_data(tmp_path)


def test_a_distillation_set_of_lines(tmp_path):
    packed = [{**row, **{key: json.dumps(row[key]) for key in ("document_ids", "scores")}} for row in RECORDS]
    documents = write(tmp_path / "collection.tsv", "10\tten", "11\televen", "12\ttwelve")
    queries = write(tmp_path / "queries.tsv", "1\tone", "2\ttwo")
    for records in (RECORDS, packed):  # some tables have lists as JSON
        path = write(tmp_path / "train.jsonl", *map(json.dumps, records))
        assert open_training_data(path, documents=documents, queries=queries).examples == DISTILLED
    for wrong, message in (
        ({"query_id": 1, "document_ids": [10], "scores": []}, "1 documents and 0 scores"),
        ({"query_id": 1, "document_ids": [], "scores": []}, "0 documents and 0 scores"),
        ({"query_id": 1, "document_ids": [10]}, "no 'scores' among the keys"),
        ({"query_id": 1, "document_ids": "10", "scores": [1]}, 'expected a list, found "10"'),
        ({"query_id": 1, "document_ids": [13], "scores": [1]}, "document '13' has no text"),
    ):
        with pytest.raises(DataError, match=f"train.jsonl:1: {message}"):
            read_distillation([write(path, json.dumps(wrong))], documents, queries)


# -- texts ---------------------------------------------------------------------------------------------

TEXTS = [("fox?", ["the fox"], ["a whale"]), ("sea?", ["a whale"], ["the fox", "nine trains"])]


def test_triples_of_texts(tmp_path):
    path = write(tmp_path / "triples.tsv.gz", "fox?\tthe fox\ta whale", "sea?\ta whale\tthe fox")
    data = open_training_data(path)
    assert in_texts(data) == [TEXTS[0], ("sea?", ["a whale"], ["the fox"])]
    assert len(data.documents) == 2  # a text that repeats is one document
    with pytest.raises(DataError, match="triples.tsv:2: .* found 4 columns"):
        open_training_data(write(tmp_path / "triples.tsv", "a\tb\tc", "a\tb\tc\td"))


def columns(names):
    return [
        {names[0]: q, names[1]: p[0], **dict(zip(names[2:], n, strict=False)), "note": 1} for q, p, n in TEXTS
    ]


@pytest.mark.parametrize("first", ["anchor", "query", "question"])
def test_triplets_with_columns(tmp_path, first):
    records = columns([first, "positive", "negative_1", "negative_2"])
    assert in_texts(open_training_data(write(tmp_path / "x.jsonl.gz", *map(json.dumps, records)))) == TEXTS
    data = open_training_data(table(tmp_path / "x.parquet", columns([first, "positive", "negative"])))
    assert in_texts(data) == [TEXTS[0], ("sea?", ["a whale"], ["the fox"])]


def test_negatives_stand_in_the_order_of_their_numbers(tmp_path):
    names = {f"negative_{i}": f"n{i}" for i in (10, 2, 1)}
    data = open_training_data(
        write(tmp_path / "x.jsonl", json.dumps({"anchor": "a", "positive": "p", **names}))
    )
    assert in_texts(data) == [("a", ["p"], ["n1", "n2", "n10"])]


@pytest.mark.parametrize(
    "name", ["train.jsonl", "train-0.parquet", "data/train-0.parquet", "train/any.parquet"]
)
def test_folders_of_triplets(tmp_path, name):
    folder = tmp_path / "set"
    folder.mkdir()
    records = columns(["anchor", "positive", "negative"])
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith("parquet"):
        table(path, records)
    else:
        write(path, *map(json.dumps, records))
    table(folder / "test-0.parquet", columns(["anchor", "positive", "negative"])[:1])
    assert len(open_training_data(folder)) == 2 and len(open_training_data(folder, split="test")) == 1


def test_faults_of_triplets(tmp_path):
    path = tmp_path / "x.jsonl"
    good = {"anchor": "a", "positive": "p", "negative": "n"}
    for wrong, message in (
        ({"anchor": "a"}, "no 'positive' among the keys anchor"),
        ({"positive": "p"}, "no 'anchor' or 'query' or 'question'"),
        ({**good, "negative": None}, "expected a text, found null"),
        ({**good, "positive": ["p"]}, "expected a text, found"),
        ({**good, "negative": "\ud800"}, "half a surrogate pair"),
        (["a", "p"], "expected an object, found list"),
    ):
        with pytest.raises(DataError, match=f"x.jsonl:2: {message}"):
            open_training_data(write(path, json.dumps(good), json.dumps(wrong)))


def passages(*texts):
    return [{"title": title, "text": text, "score": 1.0} for title, text in texts]


@pytest.mark.parametrize("name", ["dpr.json", "dpr.json.gz", "dpr.jsonl"])
def test_dpr(tmp_path, name):
    records = [
        {
            "question": "who jumps",
            "answers": ["the fox"],
            "positive_ctxs": passages(("Fox", "It jumps."), ("", "Jumping fox.")),
            "negative_ctxs": passages(("Whale", "It swims.")),
            "hard_negative_ctxs": passages(("Dog", "It is lazy.")),
        },
        {"question": "nobody", "positive_ctxs": []},
        {"question": "who swims", "positive_ctxs": passages(("Whale", "It swims."))},
    ]
    lines = map(json.dumps, records) if name.endswith("l") else [json.dumps(records, indent=1)]
    data = open_training_data(write(tmp_path / name, *lines))
    assert in_texts(data) == [
        ("who jumps", ["Fox It jumps.", "Jumping fox."], ["Dog It is lazy.", "Whale It swims."]),
        ("who swims", ["Whale It swims."], []),
    ]
    assert data.provenance["left_out"] == 1 and data.provenance["format"] == "dpr"


def test_faults_of_dpr(tmp_path):
    path = tmp_path / "dpr.json"
    good = {"question": "q", "positive_ctxs": passages(("", "p"))}
    for wrong, message in (
        ({"question": "q"}, "no 'positive_ctxs'"),
        ({**good, "question": 3}, "expected a text, found 3"),
        ({**good, "positive_ctxs": ["p"]}, "a passage must be an object"),
        ({**good, "negative_ctxs": [{"title": "x"}]}, "no 'text' among the keys title"),
    ):
        with pytest.raises(DataError, match=f"dpr.json:2: {message}"):
            open_training_data(write(path, json.dumps([good, wrong])))
    with pytest.raises(DataError, match="dpr.json:3: not valid JSON"):
        open_training_data(write(path, "[", "1,", "}"))
    with pytest.raises(DataError, match="expected a list of records, found dict"):
        open_training_data(write(path, json.dumps(good)))


# -- what is not training data -------------------------------------------------------------------------


def test_arguments_are_never_passed_over(collection, tmp_path):
    triples = write(tmp_path / "triples.tsv", "a\tb\tc")
    lists = write(tmp_path / "lists.jsonl", '["q1", "d1"]')
    with pytest.raises(ConfigError, match="documents= has no meaning for a folder"):
        open_training_data(collection, documents=collection)
    with pytest.raises(ConfigError, match="split= has no meaning for a single file"):
        open_training_data(triples, split="train")
    with pytest.raises(ConfigError, match="queries= has no meaning for a file without documents="):
        open_training_data(triples, queries=triples)
    with pytest.raises(ConfigError, match="contains ids; say where the texts are with documents="):
        open_training_data(lists)
    texts = write(tmp_path / "x.jsonl", json.dumps({"anchor": "a", "positive": "p"}))
    with pytest.raises(DataError, match="contains no ids"):
        open_training_data(texts, documents=collection)


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(DataError, match="no such file or folder; training data are"):
        open_training_data(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no corpus.jsonl here, and no files of a split 'train'"):
        open_training_data(tmp_path)
    with pytest.raises(DataError, match=r"unsupported file type '\.csv'"):
        open_training_data(write(tmp_path / "x.csv", "a,b"))
    with pytest.raises(DataError, match="x.jsonl:1: unknown layout: the first record has foo"):
        open_training_data(write(tmp_path / "x.jsonl", '{"foo": 1}'))
    with pytest.raises(DataError, match="the first record has nothing"):
        open_training_data(write(tmp_path / "x.jsonl"))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        open_training_data(write(tmp_path / "x.parquet", "PAR1"))
    with pytest.raises(DataError, match="gzip data are damaged"):
        (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"a\tb\tc\n" * 99)[:-9])
        open_training_data(tmp_path / "x.tsv.gz")


def test_parquet_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'pyarrow'.*\[train\]"):
        open_training_data(write(tmp_path / "x.parquet", "PAR1"))

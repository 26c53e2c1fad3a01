"""What is counted while documents are indexed: whole documents, and those longer than the model reads."""

import json
import time

import pytest
from tests.fakes import HashModel

from counterpoint.cli.main import main
from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer
from counterpoint.index import Index, build_index, stream
from counterpoint.index import build as build_module
from counterpoint.index.disk_usage import built_text, counted_text, cut_text
from counterpoint.index.manifest import NAME
from counterpoint.library import index as build
from counterpoint.library import open_index
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.types import Document

WORDS = "paris is in france"


def read(documents, model, folder):
    build_index(documents, model, folder)
    with Index(folder) as index:
        return index.info()


@pytest.fixture
def short(tiny_bert_folder):
    """Reads eight word-pieces of a document, [CLS] and [SEP] among them."""
    encoder = Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()}, document=TextInput(8))
    return Model(DualEncoder(encoder)).setup().eval()


@pytest.mark.parametrize("batch", [1, 3, 512])
def test_texts_that_are_longer_than_the_model_reads_are_counted(short, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(stream, "BATCH", batch)
    texts = ["is", f"{WORDS} {WORDS}", "in", "cats", WORDS * 4]
    pieces = [len(short.encoder.encoder("document").backbone.tokenizer.encode([text])[0]) for text in texts]
    longer = sum(count > 6 for count in pieces)
    assert 0 < longer < len(texts)
    found = read([Document(str(at), text) for at, text in enumerate(texts)], short, tmp_path / "index")
    assert (found["longer_than_model"], found["model_reads"]) == (longer, 8)
    assert cut_text(found).startswith(f"{longer} of 5 documents are longer than the 8 word-pieces that ")
    assert cut_text(found).endswith("; only BM25 indexes the rest; see --passage-words")


def test_the_title_counts_and_nothing_is_said_of_what_fits(short, tmp_path):
    fits = read([Document("a", "paris")], short, tmp_path / "fits")
    assert fits["longer_than_model"] == 0 and cut_text(fits) == ""
    assert read([Document("a", "paris", title=f"{WORDS} {WORDS}")], short, tmp_path / "no")[
        "longer_than_model"
    ]


def test_passages_are_counted_as_passages(tmp_path):
    passages = [Document(f"{name}#{at}", "a b", parent=name) for name in ("x", "y") for at in range(3)]
    found = read([*passages, Document("z", "a")], HashModel(), tmp_path / "index")
    assert (found["passages"], found["documents"]) == (7, 3)
    assert counted_text(found) == "3 documents in 7 passages"
    one = read([Document("z", "a")], HashModel(), tmp_path / "one")
    assert counted_text(one) == "1 document"


def test_texts_are_tokenised_once(short, tmp_path, monkeypatch):
    encoder = short.encoder.encoder("document")
    seen = []
    rows = type(encoder).rows
    monkeypatch.setattr(
        type(encoder), "rows", lambda self, texts, side: seen.extend(texts) or rows(self, texts, side)
    )
    monkeypatch.setattr(type(short), "export_queries", lambda self, folder: {"why": "texts are counted"})
    read([Document(str(at), WORDS * at) for at in range(4)], short, tmp_path / "index")
    assert sorted(text for text in seen if text) == [WORDS * at for at in range(1, 4)]


def test_a_path_inside_the_index_is_no_name_of_a_model(short, tmp_path):
    found = read([Document("a", f"{WORDS} {WORDS}")], short, tmp_path / "index")
    assert found["model"]["name"].startswith("./models/")
    assert "word-pieces that the model reads; " in cut_text(found)


def test_bm25_alone_reads_all(tmp_path):
    found = read([Document("z", "a b " * 1000)], None, tmp_path / "index")
    assert found["longer_than_model"] is None and cut_text(found) == ""


def test_an_index_of_an_earlier_version_was_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(stream.DocumentStream, "report", lambda self: {})
    found = read([Document("z", "a b")], HashModel(), tmp_path / "index")
    assert json.loads((tmp_path / "index" / NAME).read_text())["report"] == {}
    assert counted_text(found) == "1 document" and cut_text(found) == ""


def test_python_warns(short, tmp_path):
    with pytest.warns(UserWarning, match="1 of 1 documents are longer than the 8 .*; see passage_words"):
        build([" ".join([WORDS] * 9)], tmp_path / "index", model=short).close()


@pytest.mark.minilm
def test_the_default_model_reads_512_word_pieces():
    model = load_model("minilm")
    assert model.longest == 512
    vectors, longer = model.encode_counted(["a " * 510, "a " * 511, ""])
    assert longer == 1 and len(vectors["mean"].values) == 3


@pytest.mark.minilm
def test_counts_of_the_default_model_are_told_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stream, "BATCH", 2)
    long = "a cat sat on the mat " * 100
    (tmp_path / "long.jsonl").write_text(
        "".join(
            json.dumps({"_id": str(at), "text": text}) + "\n" for at, text in enumerate([long, "b", long])
        )
    )
    assert main(["index", str(tmp_path / "long.jsonl"), "-o", str(tmp_path / "i")]) == 0
    said = (
        "2 of 3 documents are longer than the 512 word-pieces that minilm reads; only BM25 indexes the rest; "
        "see --passage-words"
    )
    assert said in " ".join(capsys.readouterr().err.split())
    assert main(["info", str(tmp_path / "i")]) == 0
    assert said in capsys.readouterr().out
    assert main(["info", str(tmp_path / "i"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["longer_than_model"], found["model_reads"], found["documents"]) == (2, 512, 3)
    with open_index(tmp_path / "i") as notes:
        assert notes.longer_than_model == 2 and notes.info()["longer_than_model"] == 2
    cut = ["index", str(tmp_path / "long.jsonl"), "-o", str(tmp_path / "j"), "--passage-words", "180"]
    assert main(cut) == 0
    assert "longer than" not in capsys.readouterr().err
    with open_index(tmp_path / "j") as notes:
        assert notes.longer_than_model == 0


def test_what_a_build_took_is_told(tmp_path, monkeypatch, capsys):
    encode = HashModel.encode_document

    def slowly(self, texts):
        time.sleep(0.2)
        return encode(self, texts)

    monkeypatch.setattr(HashModel, "encode_document", slowly)
    took = read([Document("a", "x")], HashModel(), tmp_path / "i")["built"]
    assert 0.2 <= took["encoder_seconds"] <= took["seconds"] < 60
    assert took["peak_resident_bytes"] > 10**7
    (tmp_path / "one.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    index = ["index", str(tmp_path / "one.jsonl"), "-o", str(tmp_path / "j"), "--model", "none"]
    assert main(index) == 0
    told = capsys.readouterr().out
    assert "peak resident memory" in told and "encoder" not in told  # BM25 has none
    assert main([*index, "--overwrite", "--json"]) == 0
    assert {"seconds", "encoder_seconds", "peak_resident_bytes"} <= json.loads(capsys.readouterr().out).keys()
    assert main(["info", str(tmp_path / "j")]) == 0 and "built in " in capsys.readouterr().out
    assert main(["search", str(tmp_path / "j"), "x", "-w", "lexical", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak_resident_bytes"] > 10**7


def test_an_index_of_an_earlier_version_was_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(build_module, "_cost", lambda *given: {})
    found = read([Document("z", "a b")], None, tmp_path / "index")
    assert found["built"] == {} and built_text(found) == ""

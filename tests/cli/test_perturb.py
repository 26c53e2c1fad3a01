"""`counterpoint perturb`: a folder that is a collection, the same bytes from the same seed."""

import json
import shutil

import pytest
from tests.cli.commands import fails

from counterpoint.data import open_collection


@pytest.fixture
def wordnet(tmp_path):
    folder = tmp_path / "wordnet"
    folder.mkdir()
    synsets = [("fox", ["fox", "dodger", "trickster"]), ("platform", ["platform", "political program"])]
    rows = [json.dumps({"id": name, "members": members}) + "\n" for name, members in synsets]
    (folder / "synsets.jsonl").write_text("".join(rows))
    (folder / "lemma_senses.tsv").write_text("fox\tn\t0\tfox\nplatform\tn\t0\tplatform\n")
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_collection(collection, wordnet, call, tmp_path):
    code, out, err = call("perturb", collection, "-o", tmp_path / "a", "--synonyms", wordnet, "--json")
    assert code == 0, err
    assert json.loads(out) == {
        "output": str(tmp_path / "a"), "collection": "collection", "split": "test", "relevant_from": 1,
        "seed": 0, "share": 1.0, "synonyms": "wordnet",
        "documents": 2, "changed": 1, "matched": 3, "replaced": 1, "spared": 0, "kept": 2,
    }  # fmt: skip
    made = open_collection(tmp_path / "a")
    texts = {document.id: document.text for document in made.documents()}
    assert texts["fox"] in (
        f"The quick brown {word} jumps over the lazy dog." for word in ("dodger", "trickster")
    )
    assert texts["train"] == "Trains to the coast leave from platform nine."
    assert made.queries("test") == open_collection(collection).queries("test")
    code, out, _ = call("perturb", collection, "-o", tmp_path / "b", "--synonyms", wordnet)
    assert code == 0 and "1 of 2 relevant documents changed" in out
    assert "3 words in them match a query: 1 were replaced, 2 have no synonym" in out
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    drawn = set()
    for seed in (0, 8):  # which draw different words
        base = ["perturb", collection, "-o", tmp_path / "c", "--synonyms", wordnet, "--overwrite"]
        assert call(*base, "--seed", seed)[0] == 0
        drawn.add(contents(tmp_path / "c")["corpus.jsonl"])
    assert len(drawn) == 2
    code, out, _ = call(*base, "--share", "1e-9")
    assert code == 0 and "0 were replaced, 0 have no synonym, 3 were kept by --share" in out


def test_only_what_is_relevant_enough_is_changed(collection, wordnet, call, tmp_path):
    qrels = collection / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("q2\ttrain\t1", "q2\ttrain\t2"))
    base = ["perturb", collection, "-o", tmp_path / "a", "--synonyms", wordnet, "--overwrite", "--json"]
    for grade, documents, changed in ((1, 2, 1), (2, 1, 0), (3, 0, 0)):
        code, out, err = call(*base, "--relevant-from", grade)
        assert code == 0, err
        made = json.loads(out)
        assert (made["documents"], made["changed"]) == (documents, changed)


def test_what_is_refused(collection, wordnet, call, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert fails(
        call("perturb", collection, "-o", out, "--synonyms", tmp_path / "x"), "no such folder", "'nltk'"
    )
    for more in ((), ("--overwrite",)):
        itself = call("perturb", collection, "-o", collection / ".", "--synonyms", wordnet, *more)
        assert fails(itself, "is the collection itself")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    base = ("perturb", collection, "-o", tmp_path / "mine", "--synonyms", wordnet)
    assert fails(call(*base), "already exists", "--overwrite")
    assert fails(call(*base, "--overwrite"), "'thesis.txt'") and (tmp_path / "mine" / "thesis.txt").is_file()
    shutil.copytree(collection, tmp_path / "another")  # a collection, but not one that we wrote
    another = ("perturb", collection, "-o", tmp_path / "another", "--synonyms", wordnet, "--overwrite")
    assert fails(call(*another), "no perturbation.json") and contents(tmp_path / "another") == contents(
        collection
    )
    qrels = tmp_path / "another" / "qrels" / "test.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\n")
    nothing = ("perturb", tmp_path / "another", "-o", out, "--synonyms", wordnet)
    assert fails(call(*nothing), "split test", "no judgement")
    qrels = collection / "qrels" / "test.tsv"
    assert fails(call("perturb", qrels, "-o", out, "--synonyms", wordnet), "test.tsv")
    assert fails(call("perturb", collection, "-o", out, "--synonyms", wordnet, "--split", "dev"), "dev")
    assert fails(
        call("perturb", collection, "-o", out, "--synonyms", wordnet, "--share", "0"), "share: must be"
    )
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    assert fails(call("perturb", collection, "-o", out), "python -m nltk.downloader wordnet")
    assert not out.exists()

import json

import pytest
from tests.cli.commands import fails

from counterpoint.learn import Example, open_training_data

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog.",
    "dog": "A lazy dog sleeps, and the fox jumps.",
    "whale": "A whale lives in the sea.",
    "train": "Trains to the sea leave from platform nine.",
    "goods": "Goods trains leave from platform ten.",
}
QUERIES = {"q1": "lazy dog", "q2": "platform of the trains", "q3": "sea", "q4": "nobody"}
QRELS = {"q1": {"fox": 1}, "q2": {"train": 1, "goods": 1}, "q3": {"whale": 1}, "q4": {"whale": 0}}


@pytest.fixture
def trainable(tmp_path):
    folder = tmp_path / "trainable"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    lines = [f"{q}\t{d}\t{grade}\n" for q, judged in QRELS.items() for d, grade in judged.items()]
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return folder


def test_lists_are_mined_and_read_again(trainable, call, tmp_path):
    output = tmp_path / "lists.jsonl"
    code, out, _ = call("mine", trainable, "-o", output, "--count", "2", "--json")
    told = json.loads(out)
    assert code == 0 and (told["queries"], told["lines"], told["left_out"]) == (3, 4, 1)
    # dog shares words with q1; train with q3; both documents with words of q2 are its positives.
    assert list(map(json.loads, output.read_text().splitlines())) == [
        ["q1", "fox", "dog"],
        ["q2", "train"],
        ["q2", "goods"],
        ["q3", "whale", "train"],
    ]
    assert told["short"] == 4
    data = open_training_data(output, documents=trainable)
    assert data.examples[0] == Example("q1", ("fox",), ("dog",))
    assert data.relevant["q2"] == {"train", "goods"}


def test_people_get_text_and_a_call_repeats(trainable, call, tmp_path):
    one, two = tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"
    code, out, _ = call("mine", trainable, "-o", one, "--count", "1")
    assert code == 0 and "4 lines for 3 queries" in out and "2 have fewer than 1 negatives" in out
    assert call("mine", trainable, "-o", two, "--count", "1")[0] == 0
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.minilm
def test_a_model_mines(trainable, call, tmp_path):
    output = tmp_path / "lists.jsonl"
    code, out, _ = call(
        "mine", trainable, "-o", output, "--source", "minilm", "--count", "4", "--depth", "5", "--json"
    )
    assert code == 0 and json.loads(out)["source"] == "minilm"
    lists = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(lists[0][2:]) == ["dog", "goods", "train", "whale"]  # a model ranks everything


def test_mistakes(trainable, collection, call, tmp_path):
    output = tmp_path / "lists.jsonl"
    output.write_text("as it was")
    assert fails(call("mine", trainable, "-o", output, "--split", "dev"), "'dev'", "it has train")
    assert fails(call("mine", collection, "-o", output), "'train'", "it has test")
    assert fails(
        call("mine", trainable, "-o", output, "--skip", "100"), "skip 100 leaves nothing of depth 100"
    )
    assert fails(call("mine", trainable, "-o", tmp_path / "no" / "x"), "there is no such folder")
    assert fails(call("mine", tmp_path / "nowhere", "-o", output), "no such file or folder")
    assert fails(call("mine", trainable, "-o", output, "--depth", "1"), "finds no negative", "depth")
    assert output.read_text() == "as it was"

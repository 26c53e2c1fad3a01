import json

import pytest
from tests.cli.commands import fails
from tests.encode.test_interactive import save_classifier
from tests.encode.tiny import FP32

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Transformer, WholeWords, load_interactive
from counterpoint.learn import Example, open_training_data
from counterpoint.model import Model

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


def scored(path):
    """Each line's pairs of ids, and their scores."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(query, document): score for query, *pairs in lines for document, score in pairs}


def test_a_model_scores_the_lists_by_weights(trainable, call, tiny_bert_folder, tmp_path):
    heads = {"mean": Mean(normalise=True), "words": WholeWords(projection=Linear(4))}
    model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads)))
    model.save(tmp_path / "teacher")
    output, plain = tmp_path / "lists.jsonl", tmp_path / "plain.jsonl"
    teacher = ("--teacher", f"model:{tmp_path / 'teacher'}", "--weights", "mean=5 words=0.5")
    code, out, _ = call("mine", trainable, "-o", output, "--count", "1", "--json", *teacher)
    told = json.loads(out)
    assert code == 0 and (told["lines"], told["unscored"], told["teacher"]) == (4, 0, teacher[1])
    found = scored(output)
    for (query, document), score in found.items():
        q, d = model.encode_query([QUERIES[query]], FP32), model.encode_document([TEXTS[document]], FP32)
        dot = float(q["mean"].values[0] @ d["mean"].values[0])
        best = [max(float(row @ other) for other in d["words"].values) for row in q["words"].values]
        assert score == pytest.approx(5 * dot + 0.5 * sum(best), abs=1e-4)
    assert call("mine", trainable, "-o", plain, "--count", "1")[0] == 0  # the teacher changes no list
    lists = [json.loads(line) for line in plain.read_text().splitlines()]
    assert list(found) == [(query, document) for query, *ids in lists for document in ids]
    data = open_training_data(output, documents=trainable)
    assert data.examples[0].scores == {"fox": found["q1", "fox"], "dog": found["q1", "dog"]}


def test_a_cross_encoder_scores_the_lists(trainable, call, tmp_path):
    judge, output = save_classifier(tmp_path / "judge"), tmp_path / "lists.jsonl"
    code, _, _ = call("mine", trainable, "-o", output, "--teacher", f"cross-encoder:{judge}")
    found = scored(output)
    pairs = [(QUERIES[query], TEXTS[document]) for query, document in found]
    expected = load_interactive(str(judge)).scores(*zip(*pairs, strict=True), FP32)
    assert code == 0 and list(found.values()) == pytest.approx(expected.tolist(), abs=1e-5)


def test_what_a_file_does_not_score_is_left_out_and_counted(trainable, call, tmp_path):
    run, output = tmp_path / "teacher.trec", tmp_path / "lists.jsonl"
    run.write_text("q1 Q0 fox 1 2.5 t\nq2 Q0 goods 1 7 t\nq3 Q0 train 1 3 t\n")
    code, out, _ = call("mine", trainable, "-o", output, "--count", "2", "--teacher", f"run:{run}")
    lists = [json.loads(line) for line in output.read_text().splitlines()]
    assert code == 0 and lists == [["q1", ["fox", 2.5]], ["q2", ["goods", 7.0]]]
    assert "2 lines" in out and "4 documents are left out" in out  # dog; q2's train; q3's whale, train
    run.write_text("q3 Q0 train 1 3 t\n")
    told = call("mine", trainable, "-o", output, "--teacher", f"run:{run}")
    assert fails(told, "no score for any positive")


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
    assert fails(call("mine", trainable, "-o", tmp_path / "no" / "x"), "does not exist")
    assert fails(call("mine", tmp_path / "nowhere", "-o", output), "no such file or folder")
    assert fails(call("mine", trainable, "-o", output, "--depth", "1"), "finds no negative", "depth")
    for teacher in ("minilm", "judge:minilm", "model:", "run:"):
        assert fails(call("mine", trainable, "-o", output, "--teacher", teacher), "model:NAME", repr(teacher))
    weighed = ("--weights", "mean=1", "--teacher", "cross-encoder:x")
    assert fails(call("mine", trainable, "-o", output, *weighed[:2]), "with --teacher model:NAME")
    assert fails(call("mine", trainable, "-o", output, *weighed), "with --teacher model:NAME")
    assert output.read_text() == "as it was"

"""Numbers and names on the command line that nothing can be done with."""

import shutil

import pytest
from tests.cli.hostile import survives

from counterpoint.cli.main import main
from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, TokenVectors, Transformer

NUMBERS = ("nan", "inf", "x", "-1", "9" * 25)
WORDS = ("search QUERY", "evaluate --split")  # options that a word may be in
MORE = (
    "-inf",
    "9" * 5000,
    "0",
    "-0.0",
    "0x10",
    "1,2,3",
    "1e-400",
    " ",
    "\0",
    "\ud800",
    "1;2",
    "--",
    "=",
    "[1]",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_bert_folder):
    """A collection, an index without a model and one with, runs, and a folder for what is written."""
    folder = tmp_path_factory.mktemp("hostile-options")
    (folder / "c" / "qrels").mkdir(parents=True)
    documents = ["the cat sat", "a dog runs", "the red house", ""]
    rows = [f'{{"_id": "d{i}", "text": "{text}"}}\n' for i, text in enumerate(documents)]
    (folder / "c" / "corpus.jsonl").write_text("".join(rows))
    rows = [f'{{"_id": "q{i}", "text": "{text}"}}\n' for i, text in enumerate(documents[:3])]
    (folder / "c" / "queries.jsonl").write_text("".join(rows))
    rows = [f"q{i}\td{i}\t1\n" for i in range(3)]
    (folder / "c" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    for name, best in (("one", 2.0), ("two", 0.5)):
        rows = [f"q{i} Q0 d{j} 1 {best if i == j else 1.0} t\n" for i in range(3) for j in range(4)]
        (folder / f"{name}.trec").write_text("".join(rows))
    for name, model in (("bm25", "none"), ("vectors", tiny_bert_folder)):
        made = ["index", str(folder / "c"), "-o", str(folder / name), "--model", str(model)]
        assert main(made) == 0
    heads = {"tokens": TokenVectors(projection=Linear(4))}
    encoder = Encoder(Transformer(str(tiny_bert_folder), layers=1), heads)
    DualEncoder(encoder, gates={"tokens": Gate()}).save(folder / "gated")
    return folder


OPTIONS = {
    "search -k": ("search", "bm25", "cat", "-w", "lexical", "-k", "?"),
    "search --weights": ("search", "vectors", "cat", "--weights", "?"),
    "search --weights mean=": ("search", "vectors", "cat", "--weights", "mean=?"),
    "search --feedback": ("search", "vectors", "cat", "--feedback", "?"),
    "search --feedback 1,": ("search", "vectors", "cat", "--feedback", "1,?"),
    "search --fusion": ("search", "vectors", "cat", "--fusion", "?"),
    "search --workflow": ("search", "bm25", "cat", "--workflow", "?"),
    "search QUERY": ("search", "bm25", "?", "-w", "lexical"),
    "evaluate -k": ("evaluate", "c", "--index", "bm25", "-w", "lexical", "-k", "?"),
    "evaluate --measures": ("evaluate", "c", "--run", "one.trec", "--measures", "?"),
    "evaluate --measures nDCG@": ("evaluate", "c", "--run", "one.trec", "--measures", "nDCG@?"),
    "evaluate --relevant-from": ("evaluate", "c", "--run", "one.trec", "--relevant-from", "?"),
    "evaluate --split": ("evaluate", "c", "--run", "one.trec", "--split", "?"),
    "evaluate --slice": ("evaluate", "c", "--run", "one.trec", "--slice", "?"),
    "compare --alpha": ("compare", "c", "one.trec", "two.trec", "--alpha", "?"),
    "compare --confidence": ("compare", "c", "one.trec", "two.trec", "--confidence", "?"),
    "compare --resamples": ("compare", "c", "one.trec", "two.trec", "--resamples", "?"),
    "compare --seed": ("compare", "c", "one.trec", "two.trec", "--seed", "?"),
    "compare --relevant-from": ("compare", "c", "one.trec", "two.trec", "--relevant-from", "?"),
    "compare --lengths": ("compare", "c", "one.trec", "two.trec", "--lengths", "?"),
    "compare --complementarity": ("compare", "c", "one.trec", "two.trec", "--complementarity", "?"),
    "overlap -k": ("overlap", "c", "--run", "one.trec", "--run", "two.trec", "-k", "?"),
    "overlap --relevant-from": ("overlap", "c", "--run", "one.trec", "--relevant-from", "?"),
    "tune --grid": ("tune", "vectors", "c", "--dry-run", "--grid", "?"),
    "tune --grid 0:1:": ("tune", "vectors", "c", "--dry-run", "--grid", "0:1:?"),
    "tune --grid :0.5": ("tune", "vectors", "c", "--dry-run", "--grid", "0:?:0.5"),
    "tune --shares": ("tune", "vectors", "c", "--dry-run", "--shares", "?"),
    "tune -k": ("tune", "vectors", "c", "--dry-run", "--grid", "0:1:0.5", "-k", "?"),
    "tune --part": ("tune", "vectors", "c", "--dry-run", "--part", "?"),
    "index --gate": ("index", "c", "-o", "out", "--model", "gated", "--gate", "?"),
    "index --k1": ("index", "c", "-o", "out", "--model", "none", "--k1", "?"),
    "index --b": ("index", "c", "-o", "out", "--model", "none", "--b", "?"),
    "index --passage-words": ("index", "c", "-o", "out", "--model", "none", "--passage-words", "?"),
    "index --model": ("index", "c", "-o", "out", "--model", "?"),
    "index SOURCE": ("index", "?", "-o", "out", "--model", "none"),
    "fuse --weights": ("fuse", "one.trec", "two.trec", "-o", "out", "--weights", "?"),
    "fuse --weights one=": ("fuse", "one.trec", "two.trec", "-o", "out", "--weights", "one.trec=?"),
    "folds --folds": ("folds", "c", "-o", "out", "--folds", "?"),
    "folds --seed": ("folds", "c", "-o", "out", "--seed", "?"),
    "mine --count": ("mine", "c", "-o", "out", "--split", "test", "--count", "?"),
    "mine --depth": ("mine", "c", "-o", "out", "--split", "test", "--depth", "?"),
    "mine --skip": ("mine", "c", "-o", "out", "--split", "test", "--skip", "?"),
    "mine --seed": ("mine", "c", "-o", "out", "--split", "test", "--seed", "?"),
    "perturb --share": ("perturb", "c", "-o", "out", "--share", "?"),
    "perturb --seed": ("perturb", "c", "-o", "out", "--synonyms", "nowhere", "--seed", "?"),
    "fit --rank": ("fit", "whitening", "model", "c", "-o", "out", "--rank", "?"),
    "fit --shrinkage": ("fit", "whitening", "model", "c", "-o", "out", "--shrinkage", "?"),
    "fit --power": ("fit", "whitening", "model", "c", "-o", "out", "--power", "?"),
    "fit --documents": ("fit", "whitening", "model", "c", "-o", "out", "--documents", "?"),
    "fit --seed": ("fit", "whitening", "model", "c", "-o", "out", "--seed", "?"),
    "fit --steps": ("fit", "nice", "model", "c", "-o", "out", "--steps", "?"),
}  # fmt: skip


def try_all(values, name, place, tiny_bert_folder, tmp_path, capsys, monkeypatch):
    for file in place.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "model").symlink_to(tiny_bert_folder)
    monkeypatch.chdir(tmp_path)
    codes = []
    for value in values:
        arguments = [word.replace("?", value) for word in OPTIONS[name]]
        code, _, _ = survives(capsys, *arguments, outputs=["out"])
        out = tmp_path / "out"
        if code == 0 and out.exists():
            shutil.rmtree(out) if out.is_dir() else out.unlink()
        codes.append(code)
    return codes


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value(name, place, tiny_bert_folder, tmp_path, capsys, monkeypatch):
    codes = try_all(NUMBERS, name, place, tiny_bert_folder, tmp_path, capsys, monkeypatch)
    assert codes[:3] == [2, 2, 2] or name in WORDS


@pytest.mark.long
@pytest.mark.parametrize("name", OPTIONS)
def test_more_values(name, place, tiny_bert_folder, tmp_path, capsys, monkeypatch):
    try_all(MORE, name, place, tiny_bert_folder, tmp_path, capsys, monkeypatch)

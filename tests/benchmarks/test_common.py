"""Benchmarks that train rows: what is there already is used again only if it is the same."""

from argparse import Namespace
from pathlib import Path

import pytest
from benchmarks.common import read_json, train_rows, training_collection

from counterpoint.data import open_collection
from counterpoint.recipe import change, load_recipe


def test_a_collection_is_drawn_once_and_never_taken_for_another(tmp_path):
    source = tmp_path / "data" / "small"
    (source / "qrels").mkdir(parents=True)
    names = [f"q{at}" for at in range(6)]
    for kind, text in (("corpus", "a text"), ("queries", "a query")):
        (source / f"{kind}.jsonl").write_text("".join(f'{{"_id": "{n}", "text": "{text}"}}\n' for n in names))
    lines = "".join(f"{name}\t{name}\t1\n" for name in names)
    (source / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)

    def drawn(queries):
        return training_collection(tmp_path / "data", tmp_path / "runs" / "collection", ["small"], queries, 2)

    (tmp_path / "runs").mkdir()
    made = open_collection(drawn(3))
    assert (len(made.qrels("train")), len(made.qrels("dev"))) == (3, 2)
    assert drawn(3) == tmp_path / "runs" / "collection"
    with pytest.raises(SystemExit, match="choose another --output"):
        drawn(4)


def test_a_row_is_trained_once_and_never_taken_for_another(tmp_path, monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command)
        (Path(command[command.index("-o") + 1]) / "model").mkdir(parents=True)
        return Namespace(returncode=0)

    monkeypatch.setattr("benchmarks.common.subprocess.run", run)
    arguments = Namespace(output=tmp_path, jobs=1)
    for steps in (5, 5, 6):
        recipe = change(load_recipe("roc"), [f"stages.train.steps={steps}"])
        if steps == 6:
            with pytest.raises(SystemExit, match="I was trained by another recipe"):
                train_rows({"I": recipe}, lambda name, output: output / name, arguments)
        else:
            train_rows({"I": recipe}, lambda name, output: output / name, arguments)
    assert len(commands) == 1 and "--resume" not in commands[0]


@pytest.mark.parametrize("content", [None, b"# not JSON", b"\xff"])
def test_a_file_that_no_benchmark_saved_is_said_so(tmp_path, content):
    path = tmp_path / "rows.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit, match="rows.json: not a file that this benchmark has saved"):
        read_json(path)
    path.write_text('{"rows": []}', encoding="utf-8")
    assert read_json(path) == {"rows": []}

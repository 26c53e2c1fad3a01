"""`counterpoint sweep` as a user meets it."""

import json
import shlex

import pytest
from tests.cli.commands import fails

GRID = """
measures = ["nDCG@10", "R@5"]
models = ["none"]
workflows = ["hybrid", "lexical", "dense"]
[[collections]]
source = "collection"
[index]
analyzer = ["english", "none"]
"""


@pytest.fixture
def grid(collection, tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_a_sweep_and_again(grid, call, tmp_path):
    out = tmp_path / "out"
    code, text, _ = call("sweep", grid, "-o", out, "--dry-run")
    assert code == 0 and "2 cells, 0 of them done" in text and "not applicable  none dense" in text
    assert not out.exists()
    code, text, err = call("sweep", grid, "-o", out, "--json")
    report = json.loads(text)
    assert code == 0, err
    assert [row["configuration"] for row in report["rows"]] == [
        {"model": "BM25", "workflow": "lexical", "analyzer": "english"},
        {"model": "BM25", "workflow": "lexical", "analyzer": "none"},
    ]
    assert report == json.loads((out / "report.json").read_text()) and report["computed"] == 2
    code, text, _ = call("sweep", out / "sweep.toml", "-o", out)
    assert code == 0 and "2 cells, 0 computed now" in text and str(out / "report.html") in text
    code, text, _ = call("sweep", grid, "-o", out, "--dry-run", "--json")
    assert [cell["done"] for cell in json.loads(text)["cells"]] == [True, True]


def test_the_command_beside_a_row_gives_its_values(grid, tiny_bert_folder, call, tmp_path):
    text = GRID.replace('"none"]\nw', f'{{name = "tiny", model = "{tiny_bert_folder}"}}]\nw')
    text = text.replace('"R@5"', '"R@5", "P@2"').replace('"collection"', '"collection"\nrelevant_from = 1')
    grid.write_text(text + '[search]\nfusion = ["rrf"]\nweights = ["lexical=1 mean=2"]\n')
    code, text, err = call("sweep", grid, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    rows = json.loads(text)["rows"]
    assert {row["configuration"]["workflow"] for row in rows} == {"hybrid", "lexical", "dense"}
    for row in rows:
        program, *arguments = shlex.split(row["again"])
        code, text, err = call(*arguments, "--json")
        assert program == "counterpoint" and code == 0, err
        assert list(json.loads(text)["measures"].values()) == list(row["measures"].values())


def test_mistakes_in_the_grid_come_before_everything(grid, call, tmp_path):
    grid.write_text(GRID.replace("workflows", "workflow") + "codec = 4\n")
    out = tmp_path / "out"
    result = call("sweep", grid, "-o", out)
    assert fails(result, "did you mean 'workflows'?", "workflows: missing", "index.codec: unknown 4")
    assert not out.exists()
    assert fails(call("sweep", tmp_path / "absent.toml", "-o", out), "absent.toml", "cannot be read")


def test_a_model_that_is_not_there_is_exit_code_2_and_the_rest_is_done(grid, call, tmp_path):
    grid.write_text(GRID.replace('"none"]\nw', '"none", "no-such-model"]\nw'))
    code, text, err = call("sweep", grid, "-o", tmp_path / "out")
    assert code == 2 and "error: model no-such-model: " in err and "Traceback" not in err
    assert "2 cells, 2 computed now" in text and (tmp_path / "out" / "report.html").is_file()


def test_a_folder_of_something_else(grid, collection, call):
    assert fails(call("sweep", grid, "-o", collection), "holds something that is not a sweep")


@pytest.mark.shared
def test_bm25_on_a_real_collection(shared, call, tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'measures = ["nDCG@10"]\nmodels = ["none"]\nworkflows = ["lexical"]\n'
        f'[[collections]]\nsource = "{shared / "data" / "cranfield"}"\n'
        f'[[collections]]\nsource = "{shared / "data" / "med"}"\n'
    )
    code, text, err = call("sweep", grid, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    found = {row["collection"]: row["measures"]["nDCG@10"] for row in json.loads(text)["rows"]}
    # A plain BM25 with these k1 and b, by the collections' own notes.
    assert found == {"cranfield": pytest.approx(0.336, abs=0.01), "med": pytest.approx(0.665, abs=0.01)}


@pytest.mark.minilm
@pytest.mark.slow
def test_the_default_model(grid, call, tmp_path):
    grid.write_text(GRID.replace('"none"]\nw', '"minilm", "none"]\nw').replace('"dense"', '"dense", "words"'))
    code, text, err = call("sweep", grid, "-o", tmp_path / "out", "--json", "--forget-encodings")
    report = json.loads(text)
    assert code == 0, err
    # hybrid and lexical with two analyzers each; dense and words, which no analyzer changes
    assert len(report["rows"]) == 6 and report["encoded"] == 4 + 2
    assert not (tmp_path / "out" / "encodings").exists()
    row = report["rows"][0]["result"]
    assert row["model"] == {"name": "minilm", "model": "minilm"} and len(row["identity"]["model"]) == 64

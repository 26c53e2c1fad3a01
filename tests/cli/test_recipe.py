"""`counterpoint recipe` and `counterpoint train` as a user meets them."""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.cli.commands import fails, in_a_process
from tests.recipe.small import write_collection, write_recipe

from counterpoint.recipe import load_recipe


@pytest.fixture
def learnable(tmp_path):
    return write_collection(tmp_path / "learnable")


# -- recipe --------------------------------------------------------------------------------------------


def test_list(call):
    code, out, _ = call("recipe", "list")
    assert code == 0 and "colbert: " in out and "Khattab and Zaharia 2020" in out
    found = json.loads(call("recipe", "list", "--json")[1])["recipes"]
    assert {"colbert", "dpr"} <= {row["name"] for row in found} and all(row["about"] for row in found)
    assert "hil-paper:without-idf" in out
    assert all(row["variants"] == [] for row in found if row["name"] == "dpr")


def test_show_prints_a_recipe_again(call, tmp_path):
    code, out, _ = call("recipe", "show", "colbert-paper", "--set", "stages.0.lr=1e-5", "--set", "seed=7")
    assert code == 0 and tomllib.loads(out)["recipe"]["stages"][0]["lr"] == 1e-5
    (tmp_path / "again.toml").write_text(out)
    assert load_recipe(tmp_path / "again.toml").seed == 7
    found = json.loads(call("recipe", "show", "colbert-paper", "--json")[1])
    assert (
        found["recipe"]["stages"][0]["lr"] == 3e-6 and len(found["fingerprint"]) == 64 and "run" not in found
    )


def test_check(call, tmp_path):
    code, out, _ = call("recipe", "check", "dpr")
    assert code == 0 and out == "dpr: no fault found\n"
    faulty = ("recipe", "check", "dpr", "--set", "stages.0.batch=1", "--set", "stages.0.scorer.on=words")
    assert fails(call(*faulty), "batch is 1", "no vector set 'words'")
    code, out, _ = call(*faulty, "--json")
    assert code == 2 and json.loads(out)["ok"] is False and len(json.loads(out)["faults"]) == 2
    assert fails(call("recipe", "check", "dpr", "--set", "stages.0.bacth=1"), "did you mean 'batch'?")
    assert fails(call("recipe", "show", "dpe"), "did you mean 'dpr'?")
    (tmp_path / "mine.py").write_text("1 / 0\n")
    assert fails(call("recipe", "check", tmp_path / "mine.py"), "mine.py:1", "ZeroDivisionError")


def test_help_loads_no_torch():
    code = "import sys; from counterpoint.cli.main import main; "
    for command in (["recipe", "--help"], ["train", "--help"]):
        check = f"assert main({command}) == 0; assert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code + check], check=True, capture_output=True)


# -- train ---------------------------------------------------------------------------------------------


def said_of(run):
    """Lines that must be in the text, put together by hand from what --json gives."""
    found, stage = run["provenance"], run["stages"]["train"]
    (session,) = found["sessions"]
    files = [*found["training"]["provenance"]["files"], *found["development"]["files"]]
    assert [file["file"].rpartition("/")[2] for file in files] == [
        "corpus.jsonl",
        "queries.jsonl",
        "train.tsv",
        "dev.tsv",
    ]
    for file in files:
        assert file["sha256"] == hashlib.sha256(Path(file["file"]).read_bytes()).hexdigest()
    training, development = found["training"], found["development"]
    kept = f"#   best at step {stage['kept']}, kept: nDCG@10 {stage['best']['nDCG@10']:.4g}, R@100 "
    source = training["provenance"]["source"]
    return {
        *(f"#   {file['file']}  sha256 {file['sha256']}" for file in files),
        f"# trained on     16 examples, 16 queries, 40 documents of {source}, split train; "
        f"fingerprint {training['fingerprint']}",
        f"# evaluated on   4 queries, split dev of learnable; fingerprint {development['fingerprint']}",
        "# seed           1",
        f"# started from   what the recipe declares, fingerprint {run['start']['fingerprint']}",
        "# stage train    ended at step 8: all steps done",
        kept + f"{stage['best']['R@100']:.4g}",
        f"# session 1      {session['start']} to {session['end']}",
        f"#   command: {session['command']}",
        f"#   versions: {', '.join(f'{k} {v}' for k, v in session['versions'].items() if v)}",
        f"#   revision of Counterpoint: {session['revision'] or 'not a checkout'}",
    }


def test_show_says_what_a_run_started_from_and_that_it_is_not_over(
    call, learnable, tiny_bert_folder, tmp_path
):
    recipe, first = write_recipe(tmp_path / "mine.py", tiny_bert_folder), tmp_path / "first"
    assert call("train", recipe, "--data", learnable, "-o", first, "--set", "stages.0.steps=1")[0] == 0
    second = tmp_path / "second"
    code, out, err = call("train", recipe, "--data", learnable, "-o", second, "--set", f"start={first}")
    assert code == 0 and f"Started from {first}: " in err and "train: ended at step 4: all steps done" in out
    digest = hashlib.sha256((first / "model" / "weights.safetensors").read_bytes()).hexdigest()
    shown = call("recipe", "show", second)[1].splitlines()
    at = shown.index(f"# started from   {first}, sha256 {digest}")
    assert shown[at + 1].endswith(" weights taken") and shown[at + 2].startswith("# stage train")
    shutil.rmtree(second / "model")
    (second / "checkpoints" / "latest.json").write_text('{"latest": "0-2"}')
    out = call("recipe", "show", second)[1]
    assert "# stage train    not ended\n" in out and "# model          none yet\n" in out


def test_a_part_that_only_its_file_defines_is_noted_before_training(
    call, learnable, tiny_bert_folder, tmp_path
):
    recipe = write_recipe(tmp_path / "own.py", tiny_bert_folder)
    recipe.write_text(
        recipe.read_text() + "\nfrom counterpoint.encode import Mean\nclass MyMean(Mean): pass\n"
        "recipe.model.encoder.query.heads['mine'] = MyMean()\n"
    )
    told = "the model has recipe_own:MyMean, which no installed package names as a part; other commands"
    assert told in call("recipe", "check", recipe)[2]
    code, out, err = call(
        "train", recipe, "--data", learnable, "-o", tmp_path / "run", "--set", "stages.0.steps=1"
    )
    assert code == 0 and told in err and "Install its own classes, then use it:" in out


def test_a_loss_without_a_gradient_is_told(call, learnable, tiny_bert_folder, tmp_path):
    recipe = write_recipe(tmp_path / "flat.py", tiny_bert_folder, "Softer()")
    recipe.write_text(recipe.read_text().replace("(scale=20.0)(step)", "(scale=20.0)(step).detach()"))
    code, _, err = call("train", recipe, "--data", learnable, "-o", tmp_path / "run")
    assert code == 2 and "train: the loss has no gradient; compute it from the scores or vectors" in err


def test_train_index_evaluate(call, learnable, tiny_bert_folder, tmp_path):
    recipe, run = write_recipe(tmp_path / "mine.py", tiny_bert_folder), tmp_path / "run"
    code, out, err = call(
        "train", recipe, "--data", learnable, "-o", run, "--set", "stages.0.epochs=2", "--json"
    )
    assert code == 0, err
    trained = json.loads(out)
    assert trained["model"] == str(run / "model") and trained["examples"] == 16
    assert trained["development"] == "split dev of learnable" and "16 examples" in err
    assert (
        trained["stages"]["train"]["last"]["step"] == 8 and trained["stages"]["train"]["best"]["nDCG@10"] >= 0
    )
    # The run says everything about itself, and stays a recipe.
    code, out, _ = call("recipe", "show", run)
    assert code == 0 and tomllib.loads(out)["fingerprint"] == trained["recipe"]
    record = json.loads(call("recipe", "show", run, "--json")[1])["run"]
    assert record["model"] == str(run / "model")
    assert said_of(record) <= set(out.splitlines())
    # What was said after training works, for the run's folder, too.
    for model in (run / "model", run):
        index = tmp_path / f"index-{model.name}"
        assert call("index", learnable, "-o", index, "--model", model)[0] == 0
    code, out, _ = call("evaluate", learnable, "--index", index, "--split", "dev", "-w", "dense", "--json")
    assert code == 0 and json.loads(out)["queries"] == 4
    # Taken up: the same is the same; anything else is named.
    code, out, _ = call("train", run, "--data", learnable, "-o", run, "--resume")
    assert code == 0 and "counterpoint index" in out and "best at step" in out
    again = ("train", run, "--data", learnable, "-o", run)
    assert fails(call(*again), "already exists", "--resume")
    assert fails(
        call(*again, "--resume", "--set", "seed=3"),
        "seed is 1 in this run, found 3",
        f"counterpoint train {run} --resume -o {run} --data",
    )


def test_runs_share_a_memory(call, learnable, tiny_bert_folder, tmp_path):
    recipe, memory = write_recipe(tmp_path / "mine.py", tiny_bert_folder), tmp_path / "memory"
    scorer = "stages.0.scorer={'part': 'counterpoint.score:MaxSim', 'on': 'tokens'}"
    settings = ("stages.0.steps=2", "stages.0.remember=1", "stages.0.learn=['query.heads.*']", scorer)
    line = ("train", recipe, "--data", learnable, *(word for one in settings for word in ("--set", one)))
    for run in ("one", "two"):
        code, _, err = call(*line, "-o", tmp_path / run, "--memory", memory)
        assert code == 0, err
    (folder,) = memory.iterdir()
    assert [path.suffix for path in folder.iterdir()] == [".safetensors"]
    one, two = ((tmp_path / run / "metrics.jsonl").read_text() for run in ("one", "two"))
    assert one == two


def test_warnings_are_repeated_at_the_end(call, learnable, tiny_bert_folder, tmp_path):
    """A rate that destroys the model is warned of on stderr, in the last words, in --json and by `show`."""
    recipe = write_recipe(tmp_path / "mine.py", tiny_bert_folder)
    settings = ("stages.0.lr=5", "stages.0.steps=40", "stages.0.clip=none", "stages.0.watch.every=4")
    line = ("train", recipe, "--data", learnable, *(word for one in settings for word in ("--set", one)))
    code, out, err = call(*line, "-o", tmp_path / "a")
    assert code == 0, err
    warnings = [line.strip() for line in out.splitlines() if line.startswith("  warning: ")]
    assert warnings and "The vectors are collapsing" in warnings[0]
    assert all(warning in err.splitlines() for warning in warnings)
    code, out, _ = call(*line, "-o", tmp_path / "b", "--json")
    found = json.loads(out)["stages"]["train"]["warnings"]
    assert [f"warning: {text}" for text in found] == warnings
    assert f"#   {warnings[0]}" in call("recipe", "show", tmp_path / "a")[1].splitlines()


def test_mistakes_in_the_call(call, learnable, tiny_bert_folder, tmp_path):
    recipe, run = write_recipe(tmp_path / "mine.py", tiny_bert_folder), tmp_path / "run"
    train = ("train", recipe, "--data", learnable, "-o", run)
    assert fails(call("train", recipe, "-o", run), "--data")
    assert fails(call("train", recipe, "--data", tmp_path / "nowhere", "-o", run), "no such file or folder")
    assert fails(call(*train, "--split", "test"), "test", "dev, train")
    assert fails(call(*train, "--dev-split", "test"), "no split 'test' for development")
    assert fails(call(*train, "--dev-split", "16"), "cannot hold out 16 of 16")
    both = "data.train and data.development are both 'train'"
    assert fails(call(*train, "--dev-split", "train"), both, "--dev-split 100")
    assert fails(call(*train, "--split", "dev"), both.replace("train'", "dev'"))
    assert fails(call(*train, "--dev-split", "0"), "need development queries")
    assert fails(call(*train, "--set", "stages.0.batch=1", "--set", "measures=['x']"), "batch is 1", "'x'")
    assert fails(call(*train, "--set", "model.encoder.query.backbone.layers=9"), "this model has 3")
    assert fails(call(*train, "--resume"), "no run to resume")
    assert not run.exists()


def test_splits_that_were_asked_for_are_written_down(call, learnable, tiny_bert_folder, tmp_path):
    recipe, run = write_recipe(tmp_path / "mine.py", tiny_bert_folder), tmp_path / "run"
    line = ("train", recipe, "--data", learnable, "-o", run, "--dev-split", 3, "--split", "train", "--json")
    code, out, err = call(*line, "--set", "stages.0.steps=1")
    assert code == 0, err
    assert (
        json.loads(out)["development"] == "3 training queries held out" and json.loads(out)["examples"] == 13
    )
    data = load_recipe(run).data
    assert (data.train, data.development, data.held_out) == ("train", None, 3)


def test_a_loss_of_ones_own(call, learnable, tiny_bert_folder, tmp_path):
    recipe, run = write_recipe(tmp_path / "own.py", tiny_bert_folder, "Softer()"), tmp_path / "run"
    code, out, err = call("train", recipe, "--data", learnable, "-o", run, "--json")
    assert code == 0, err
    assert "softer" in json.loads(out)["stages"]["train"]["last"]
    # Elsewhere the class is not known, and no code of the run is run.
    assert fails(in_a_process("recipe", "show", run), "recipe_own:Softer", "in the recipe file own.py")

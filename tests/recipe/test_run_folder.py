"""The folder of a run: what is written down, what is refused, and that a run is taken up again."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.recipe.small import declared, write_collection

import counterpoint.learn.trainer
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.learn import Build, MarginMSE, RandomNegatives, Train
from counterpoint.loading import load_model
from counterpoint.locks import locked
from counterpoint.recipe import DataSettings, change, describe_run, load_recipe, read_recipe_data, run_recipe
from counterpoint.recipe.run_folder import LOCK, session


def begin(*given):
    """Begin a session that does not end, as if its process was killed."""
    session(*given).__enter__()


@pytest.fixture
def collection(tmp_path):
    return write_collection(tmp_path / "collection")


@pytest.fixture
def begun(collection, tmp_path):
    """A recipe, its data and the folder of a run that was begun."""
    recipe = declared(data=DataSettings(held_out=0))
    training_data, folder = read_recipe_data(recipe, collection), tmp_path / "run"
    begin(folder, recipe, training_data, "as typed", False)
    return recipe, training_data, folder


def trainer(behave):
    """A trainer that does nothing but this."""

    def train(job, *, resume=False, reporter=None):
        behave(job)
        return job.folder / "model"

    return train


def test_a_run_is_trained_described_and_loaded(tiny_bert_folder, collection, tmp_path):
    recipe = declared(tiny_bert_folder)
    folder = tmp_path / "run"
    model = run_recipe(recipe, read_recipe_data(recipe, collection), folder, command="a command")
    assert model == folder / "model" and not recipe.model.is_set_up
    assert load_recipe(folder).fingerprint() == recipe.fingerprint()
    assert load_model(folder).fingerprint() == load_model(model).fingerprint()
    found = describe_run(folder)
    (trained,) = found["provenance"]["sessions"]
    assert trained["start"] <= trained["end"] and trained["command"] == "a command"
    assert found["stages"]["train"]["last"]["step"] == 4  # 16 examples, 4 a batch, one epoch
    assert set(found["stages"]["train"]["best"]) == {"step", "nDCG@10", "R@100"}
    # A run that is complete is taken up and left as it is.
    again = run_recipe(recipe, read_recipe_data(recipe, collection), folder, resume=True)
    assert load_model(again).fingerprint() == load_model(model).fingerprint()
    assert len(describe_run(folder)["provenance"]["sessions"]) == 2


def test_a_run_starts_from_another(tiny_bert_folder, collection, tmp_path):
    """From the best model of a run, with other heads; once begun, from no other."""
    first = declared(tiny_bert_folder)
    run_recipe(first, read_recipe_data(first, collection), tmp_path / "first")
    second = change(first, [f"start={tmp_path / 'first'}", "stages.train.lr=0", "stages.train.steps=2"])
    folder, training_data = tmp_path / "second", read_recipe_data(first, collection)
    trained = load_model(tmp_path / "first").fingerprint()
    assert load_model(run_recipe(second, training_data, folder)).fingerprint() == trained
    found = describe_run(folder)
    assert found["start"]["source"] == str(tmp_path / "first") and not found["start"]["new"]
    assert found["provenance"]["start"]["sha256"] == found["start"]["sha256"]
    assert found["start"]["fingerprint"] == trained
    assert describe_run(tmp_path / "first")["start"].keys() == {"fingerprint"}
    shutil.rmtree(tmp_path / "first")
    with pytest.raises(ConfigError, match="start: .*no such folder"):
        run_recipe(second, training_data, folder, resume=True)
    run_recipe(change(first, ["seed=2"]), training_data, tmp_path / "first")
    with pytest.raises(ConfigError, match="is not the one that this run started from"):
        run_recipe(second, training_data, folder, resume=True)


def test_provenance_says_what_stands_behind_a_run(begun, monkeypatch):
    recipe, training_data, folder = begun
    written = json.loads((folder / "provenance.json").read_text())
    assert written["seed"] == 1 and written["training"]["fingerprint"] == training_data.training.fingerprint
    (first,) = written["sessions"]
    assert first["end"] is None and first["command"] == "as typed" and first["processes"] == 1
    assert {"counterpoint", "python", "torch", "transformers", "accelerate"} <= first["versions"].keys()
    assert first["versions"]["torch"] and first["machine"]["cores"]
    with session(folder, recipe, training_data, "again", True):
        pass
    ends = [each["end"] for each in json.loads((folder / "provenance.json").read_text())["sessions"]]
    assert ends[0] is None and ends[1]


def test_the_revision_of_the_working_folder_is_noted(collection, tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    (checkout / "inside").mkdir(parents=True)
    (checkout / "file").write_text("1")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "file"], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *arguments], cwd=checkout, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True
    )
    revision = done.stdout.strip()
    monkeypatch.chdir(checkout / "inside")
    recipe = declared()
    for name, expected in (("clean", revision), ("dirty", f"{revision} with changes")):
        begin(tmp_path / name, recipe, read_recipe_data(recipe, collection), "", False)
        (noted,) = json.loads((tmp_path / name / "provenance.json").read_text())["sessions"]
        assert noted["working_folder"] == {"folder": str(checkout), "revision": expected}
        (checkout / "file").write_text("2")


# -- what is refused -----------------------------------------------------------------------------------


def test_a_folder_that_is_there_is_not_begun_again(begun):
    recipe, training_data, folder = begun
    before = (folder / "provenance.json").read_bytes()
    with pytest.raises(ArtifactError, match="already exists; continue it with --resume"):
        begin(folder, recipe, training_data, "", False)
    assert (folder / "provenance.json").read_bytes() == before


def test_another_recipe_is_not_taken_up(begun):
    _, training_data, folder = begun
    other = declared(seed=2, stages=[Train(MarginMSE(), batch=4, lr=1e-3)])
    with pytest.raises(ConfigError) as error:
        begin(folder, other, training_data, "", True)
    assert "seed is 1 in this run, found 2" in str(error.value)
    assert "stages.0.objective.part is 'counterpoint.learn:Contrastive'" in str(error.value)


def test_other_data_are_not_taken_up_and_moved_data_are(begun, collection, tmp_path):
    recipe, _, folder = begun
    moved = collection.rename(tmp_path / "moved")
    begin(folder, recipe, read_recipe_data(recipe, moved), "", True)
    with open(moved / "qrels" / "train.tsv", "a") as file:
        file.write("q3\td9\t1\n")
    with pytest.raises(ConfigError, match="the training data are not those of this run") as error:
        begin(folder, recipe, read_recipe_data(recipe, moved), "", True)
    assert "sha256" in str(error.value)


def test_nothing_to_take_up(begun, tmp_path):
    recipe, training_data, folder = begun
    with pytest.raises(ArtifactError, match="no run to resume"):
        begin(tmp_path / "nowhere", recipe, training_data, "", True)
    (folder / "provenance.json").write_text("{")
    with pytest.raises(ArtifactError, match="not valid JSON"):
        begin(folder, recipe, training_data, "", True)
    (folder / "provenance.json").unlink()
    with pytest.raises(ArtifactError, match="incomplete"):
        begin(folder, recipe, training_data, "", True)
    with pytest.raises(ArtifactError, match="no model yet"):
        load_model(folder)


def test_a_folder_in_which_another_process_trains(begun, monkeypatch):
    recipe, training_data, folder = begun
    before = (folder / "provenance.json").read_bytes()
    with locked(folder / LOCK, "held by the other process"):
        with pytest.raises(ArtifactError, match="another process is training in this folder; wait"):
            run_recipe(recipe, training_data, folder, resume=True)
        assert (folder / "provenance.json").read_bytes() == before
    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(lambda job: None))
    run_recipe(recipe, training_data, folder, resume=True)  # it has ended


def test_a_new_run_is_locked_while_it_trains(begun, tmp_path, monkeypatch):
    recipe, training_data, _ = begun

    def another(job):
        with pytest.raises(ArtifactError, match="another process is training"):
            begin(job.folder, recipe, training_data, "", True)

    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(another))
    run_recipe(recipe, training_data, tmp_path / "new")


def test_a_disk_without_locks_is_trained_on(begun, tmp_path, monkeypatch, caplog):
    recipe, training_data, _ = begun

    def flock(descriptor, how):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(lambda job: None))
    run_recipe(recipe, training_data, tmp_path / "new")
    (trained,) = json.loads((tmp_path / "new" / "provenance.json").read_text())["sessions"]
    assert trained["end"] and "has no locks (Function not implemented)" in caplog.text


def test_faults_are_found_before_a_folder_is_made(collection, tmp_path):
    recipe = declared(
        stages=[Train(MarginMSE(), declared().stages[0].scorer, negatives=(RandomNegatives(),))]
    )
    with pytest.raises(ConfigError, match="learns from a teacher"):
        run_recipe(recipe, read_recipe_data(recipe, collection), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- what is left behind -------------------------------------------------------------------------------


def test_a_run_that_fails_before_it_learns_leaves_nothing(begun, tmp_path, monkeypatch):
    recipe, training_data, _ = begun

    def refuse(job):
        raise DataError("no such model")

    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(refuse))
    with pytest.raises(DataError, match="no such model"):
        run_recipe(recipe, training_data, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("error", [DataError("no"), AttributeError("a class of the user's own")])
def test_an_evaluation_before_the_first_step_is_nothing_learnt(begun, tmp_path, monkeypatch, error):
    recipe, training_data, _ = begun

    def fail(job):
        (job.folder / "metrics.jsonl").write_text('{"stage": "train", "step": 0, "nDCG@10": 0.5}\n')
        raise error

    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(fail))
    with pytest.raises(type(error)):
        run_recipe(recipe, training_data, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_run_that_fails_later_keeps_what_it_has(begun, tmp_path, monkeypatch):
    recipe, training_data, _ = begun

    def diverge(job):
        (job.folder / "metrics.jsonl").write_text(
            '{"number": 0, "stage": "train", "step": 1, "loss": 2.0}\n{"nu'
        )
        raise DataError("not finite")

    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(diverge))
    with pytest.raises(DataError, match="not finite"):
        run_recipe(recipe, training_data, tmp_path / "new")
    found = describe_run(tmp_path / "new")
    assert found["model"] is None and found["provenance"]["sessions"][0]["end"] is None
    assert found["stages"]["train"] == {
        "last": {"step": 1, "loss": 2.0},
        "best": None,
        "warnings": [],
        "ended": None,
        "kept": None,
    }


def test_the_best_is_the_first_of_the_highest(begun):
    *_, folder = begun
    rows = [{"step": step, "nDCG@10": value} for step, value in ((0, 0.1), (2, 0.4), (4, 0.4), (6, 0.2))]
    lines = [json.dumps({"number": 0, "stage": "train", **row}) + "\n" for row in rows]
    (folder / "metrics.jsonl").write_text("".join(lines))
    found = describe_run(folder)["stages"]["train"]
    assert found == {
        "last": {"step": 6, "nDCG@10": 0.2},
        "best": {"step": 2, "nDCG@10": 0.4},
        "warnings": [],
        "ended": None,
        "kept": None,
    }
    (folder / "metrics.jsonl").write_text("broken\n" + lines[0])
    with pytest.raises(ArtifactError, match="line 1 is no log entry"):
        describe_run(folder)


def test_how_stages_ended_and_what_was_kept(begun):
    """A stage before the latest checkpoint's has ended: early for a reason, or after all of its steps."""
    recipe, training_data, folder = begun
    stage = recipe.stages[0]
    names = ("early", "whole", "going", "to come")
    keeps = ("last", "best", "best", "best")
    stages = [replace(stage, name=name, keep=keep) for name, keep in zip(names, keeps, strict=True)]
    recipe = replace(declared(data=recipe.data), stages=[*stages, Build()])
    (folder / "recipe.toml").write_text(recipe.to_toml())
    rows = [
        {"number": 0, "stage": "early", "step": 2, "nDCG@10": 0.4},
        {"number": 0, "stage": "early", "step": 4, "nDCG@10": 0.1, "loss": 1.0},
        {"number": 0, "stage": "early", "step": 4, "stopped": "enough"},
        {"number": 1, "stage": "whole", "step": 3, "nDCG@10": 0.5},
        {"number": 1, "stage": "whole", "step": 1500, "nDCG@10": 0.3},
        {"number": 2, "stage": "going", "step": 1, "loss": 2.0},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "latest.json").write_text('{"latest": "2-0"}')
    found = describe_run(folder)["stages"]
    assert {name: stage["ended"] for name, stage in found.items()} == {
        "early": "ended at step 4: enough",
        "whole": "ended at step 1,500: all steps done",
        "going": None,
        "to come": None,
        "build": None,
    }
    assert [stage["kept"] for stage in found.values()] == [4, 3, None, None, None]
    (folder / "checkpoints" / "latest.json").write_text('{"latest": "5-0"}')
    assert describe_run(folder)["stages"]["build"]["ended"] == "done"
    for text in ("broken", "[]", "3", '{"latest": 3}', '{"latest": "2"}', "null"):
        (folder / "checkpoints" / "latest.json").write_text(text)
        with pytest.raises(ArtifactError, match="checkpoint cannot be read"):
            describe_run(folder)


def test_only_the_first_of_several_processes_writes(begun, tmp_path, monkeypatch):
    recipe, training_data, _ = begun
    seen = []
    monkeypatch.setattr(counterpoint.learn.trainer, "train", trainer(lambda job: seen.append(job.folder)))
    monkeypatch.setenv("RANK", "1")
    run_recipe(recipe, training_data, tmp_path / "new")
    assert seen == [tmp_path / "new"] and not Path(seen[0]).exists()

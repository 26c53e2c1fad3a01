"""Settings by path: `--set`."""

import pytest
from tests.recipe.small import declared

from counterpoint.errors import ConfigError
from counterpoint.learn import Contrastive, Train
from counterpoint.recipe import change, differences
from counterpoint.score import Dot, MaxSim


@pytest.mark.parametrize(
    "assignment, path, value",
    [
        ("stages.0.lr=1e-5", "stages.0.lr", 1e-5),
        ("stages.train.batch=8", "stages.0.batch", 8),
        ("seed=3", "seed", 3),
        (" seed = 3 ", "seed", 3),
        ("model.encoder.query.backbone.layers=2", "model.encoder.query.backbone.layers", 2),
        (
            "model.encoder.query.heads.tokens.projection.dim=9",
            "model.encoder.query.heads.tokens.projection.dim",
            9,
        ),
        ("stages.0.schedule=cosine", "stages.0.schedule", "cosine"),
        ("stages.0.schedule='cosine'", "stages.0.schedule", "cosine"),
        ("stages.0.clip=none", "stages.0.clip", {"none": True}),
        ("stages.0.clip=null", "stages.0.clip", {"none": True}),
        ("stages.0.clip=2", "stages.0.clip", 2.0),
        ("stages.0.objective.symmetric=true", "stages.0.objective.symmetric", True),
        ("stages.0.objective.symmetric=True", "stages.0.objective.symmetric", True),
        ("stages.0.scorer.on=tokens", "stages.0.scorer.on", "tokens"),
        ("search={'weights': {'mean': 1.0}}", "search", {"weights": {"mean": 1.0}}),
        ("model.search.weights.mean=2", "model.search.weights.mean", 2),
        ("measures.0='RR@10'", "measures.0", "RR@10"),
        ("name=3", "name", "3"),
        ("about=a=b", "about", "a=b"),
        ("data.held_out=7", "data.held_out", 7),
    ],
)
def test_one_setting_changes_and_nothing_else(assignment, path, value):
    recipe = declared()
    before = recipe.resolved()
    changed = change(recipe, [assignment])
    ((where, _, new),) = differences(before, changed.resolved())
    assert (where, new) == (path, value) and type(new) is type(value)
    assert recipe.resolved() == before


def test_lists_are_given_whole():
    changed = change(declared(), ["stages.0.learn=['query.*', 'scorer.*']", 'measures=["R@5"]'])
    assert list(changed.stages[0].learn) == ["query.*", "scorer.*"] and list(changed.measures) == ["R@5"]


def test_a_part_may_be_another():
    scorer = MaxSim("tokens", idf=0.5).to_dict()
    changed = change(declared(), [f"stages.0.scorer={scorer}"])
    assert isinstance(changed.stages[0].scorer, MaxSim) and changed.stages[0].scorer.idf == 0.5
    with pytest.raises(ConfigError, match="expected a Scorer or None"):
        change(declared(), [f"stages.0.scorer={Contrastive().to_dict()}"])


def test_assignments_follow_each_other_and_none_changes_nothing():
    recipe = declared()
    assert change(recipe, ["seed=3", "seed=4"]).seed == 4
    assert change(recipe, []) is recipe


@pytest.mark.parametrize(
    "assignment, needles",
    [
        ("seed", ["expected path=value"]),
        ("sede=3", ["unknown argument 'sede'", "did you mean 'seed'?"]),
        ("stages.0.rl=1", ["unknown argument 'rl'", "it has objective, scorer"]),
        ("stages.1.lr=1", ["no number 1", "1 entries"]),
        ("stages.-1.lr=1", ["nothing is named '-1'"]),
        ("stages.tran.lr=1", ["nothing is named 'tran'", "did you mean 'train'?"]),
        ("stages.0.lr=fast", ["expected a number, found 'fast'"]),
        ("stages.0.lr=nan", ["expected a number"]),
        ("stages.0.lr=True", ["expected a number, found True"]),
        ("stages.0.batch=2.5", ["expected a whole number, found 2.5"]),
        ("stages.0.objective.symmetric=1", ["expected True or False, found 1"]),
        ("stages.0.schedule=cosin", ["one of 'linear', 'constant', 'cosine'", "found 'cosin'"]),
        ("stages.0.learn=query", ["expected a list of: a text, found 'query'"]),
        ("stages.0.learn=[1]", ["expected a list of: a text"]),
        ("stages.0.scorer=MaxSim", ["expected a Scorer or None, found 'MaxSim'"]),
        ("stages.0.lr.x=1", ["there is no 'x' below 0.001"]),
        ("stages.0.teacher.source=x", ["there is no 'source' below None"]),
        ("model.encoder.query.heads.token.normalise=true", ["did you mean 'tokens'?"]),
        ("stages.0.batch=0", ["batch must be at least 1"]),
        ("stages.0.batch=" + "9" * 5000, ["expected a whole number"]),
    ],
)
def test_what_cannot_be_set_is_explained(assignment, needles):
    with pytest.raises(ConfigError) as error:
        change(declared(), [assignment])
    for needle in needles:
        assert needle in str(error.value)


def test_all_assignments_that_fail_are_listed():
    with pytest.raises(ConfigError) as error:
        change(declared(), ["sede=3", "seed=3", "stages.0.lr=x"])
    assert len(error.value.faults) == 2


def test_a_name_that_two_stages_have_is_no_path():
    stages = [Train(Contrastive(), Dot("mean")), Train(Contrastive(), Dot("mean"))]
    with pytest.raises(ConfigError, match="2 entries are named 'train'"):
        change(declared(stages=stages), ["stages.train.lr=1"])
    assert change(declared(stages=stages), ["stages.1.lr=1"]).stages[1].lr == 1

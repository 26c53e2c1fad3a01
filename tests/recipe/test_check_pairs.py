"""Every fault that only a cross-encoder's recipe can have, each alone and all at once."""

import pytest
from tests.recipe.small import declared

from counterpoint.encode import InteractiveEncoder, Linear, Transformer
from counterpoint.learn import (
    AlignmentStop,
    BM25Negatives,
    BM25Terms,
    Build,
    CachedContrastive,
    Contrastive,
    Filtered,
    Fit,
    FromData,
    KLDivergence,
    MarginMSE,
    ModelNegatives,
    ModelTeacher,
    NegativeCache,
    NegativeLogLikelihood,
    NoImprovement,
    PairwiseCrossEntropy,
    ResidualMargin,
    TopicBatches,
    Train,
    WatchSettings,
)
from counterpoint.recipe import Recipe, change, check
from counterpoint.score import Dot, MaxSim


def judged(**changes):
    model = InteractiveEncoder(Transformer("some/model"), Linear(1))
    return declared(**{"model": model, "search": None, "stages": [train()], **changes})


def train(objective=None, **changes):
    return Train(objective or NegativeLogLikelihood(), **{"negatives": (BM25Negatives(),), **changes})


def stages(*found):
    return {"stages": list(found)}


FAULTS = {
    "a scorer": ({"scorer": Dot("mean")}, "scorer: needs vectors"),
    "how it is searched": ({"search": {"weights": {"mean": 1.0}}}, "search: needs vectors"),
    "a stage's scorer": (stages(train(scorer=Dot("mean"))), "stages.train.scorer: Dot needs vectors"),
    "a sum of scorers is one fault": (
        stages(train(scorer=Dot("mean") + MaxSim("words"))),
        "stages.train.scorer: Sum needs vectors",
    ),
    "a loss's scorer": (
        stages(train(NegativeLogLikelihood() + 0.1 * Contrastive(scorer=Dot("mean")))),
        "stages.train.objective.losses.1.scorer: Dot needs vectors",
    ),
    "a cache": (stages(train(cache=NegativeCache())), "stages.train.cache: NegativeCache needs vectors"),
    "BM25's vectors": (
        stages(train(lexical=BM25Terms())),
        "stages.train.lexical: BM25Terms needs vectors",
    ),
    "a loss against BM25": (
        stages(train(ResidualMargin())),
        "stages.train: residual_margin: needs vectors",
    ),
    "a loss on a cache": (
        stages(train(CachedContrastive())),
        "stages.train.objective: CachedContrastive needs vectors",
    ),
    "alignment": (stages(train(stop=AlignmentStop())), "stages.train.stop: AlignmentStop needs vectors"),
    "what it would find itself": (
        stages(train(negatives=(ModelNegatives(),))),
        "stages.train.negatives.0: ModelNegatives needs vectors",
    ),
    "that, filtered": (
        stages(train(negatives=(Filtered(ModelNegatives(), ModelTeacher("x", scorer=Dot("cls"))),))),
        "stages.train.negatives.0.source: ModelNegatives needs vectors",
    ),
    "a watch": (stages(train(watch=WatchSettings(every=3))), "stages.train.watch: needs vectors"),
    "a fit": (stages(train(), Fit("mean")), "stages.fit: Fit needs vectors"),
    "an index": (stages(train(), Build()), "stages.build: Build needs vectors"),
    "no negatives": (stages(train(negatives=())), "give the stage negatives"),
    "no negatives for what would take the batch's": (
        stages(train(Contrastive(), negatives=())),
        "contrastive compares a query's own documents; give the stage negatives",
    ),
    "both directions": (stages(train(Contrastive(symmetric=True))), "contrastive: symmetric compares"),
    "a teacher for nothing": (
        stages(train(teacher=ModelTeacher("minilm"))),
        "teacher: no loss of this stage uses it",
    ),
    "a pattern for nothing": (
        stages(train(learn=("query.*",))),
        "learn: 'query.*' matches no parameter; names begin with objective, backbone, head",
    ),
    "a pattern into nothing": (stages(train(freeze=("head.tail.*",))), "'head.tail.*' matches no parameter"),
    "a source that is not there": (
        {"model": InteractiveEncoder(Transformer("./no/such/folder"), Linear(1))},
        "model.backbone.source: no such folder",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone(name):
    changes, message = FAULTS[name]
    (fault,) = check(judged(**changes))
    assert message in fault


@pytest.mark.parametrize(
    "found",
    [
        train(PairwiseCrossEntropy(), batch=1, chunk=8, accumulate=4),
        train(Contrastive(), batch=1),
        train(learn=("head.*", "backbone.model_.encoder.layer.[01].*"), freeze=("*.bias",)),
        train(MarginMSE() + KLDivergence(), teacher=ModelTeacher("minilm", scorer=Dot("mean"))),
        train(negatives=(Filtered(FromData(), ModelTeacher("minilm", scorer=MaxSim("words"))),)),
        train(sampler=TopicBatches(), stop=NoImprovement("nDCG@10")),
    ],
)
def test_what_is_right_has_no_fault(found):
    assert check(judged(stages=[found])) == []


def test_a_teachers_scorer_is_no_matter_of_the_model():
    """Not of a model with vectors either: it has no set `cls`."""
    taught = Train(
        MarginMSE(), Dot("mean"), negatives=(FromData(),), teacher=ModelTeacher("minilm", scorer=Dot("cls"))
    )
    assert check(declared(stages=[taught])) == []


def test_all_faults_at_once():
    one = train(CachedContrastive(), cache=NegativeCache(), scorer=Dot("mean"), learn=("query.*",))
    faults = check(judged(stages=[one, Build()], scorer=Dot("mean"), measures=("nope",)))
    for needle in ("scorer: needs", "train.scorer", "train.cache", "CachedC", "'query.*'", "Build", "'nope'"):
        assert any(needle in fault for fault in faults), needle
    assert len(faults) == 7


def test_it_is_plain_data_and_can_be_changed():
    recipe = judged()
    again = Recipe.from_toml(recipe.to_toml())
    assert again.fingerprint() == recipe.fingerprint() and isinstance(again.model, InteractiveEncoder)
    changed = change(recipe, ["model.max_length=128", "data.depth=20", "model.backbone.layers=2"])
    assert (changed.model.max_length, changed.data.depth, changed.model.backbone.layers) == (128, 20, 2)
    assert recipe.declared_model() is recipe.model

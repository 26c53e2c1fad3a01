"""Every fault that can be known before anything is loaded, each alone and all at once."""

import json
import sys
from dataclasses import replace

import pytest
from tests.encode.tiny import copy, save_tiny_bert
from tests.recipe.small import declared

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    Gate,
    InteractiveEncoder,
    Linear,
    Mean,
    Routed,
    Router,
    TokenVectors,
    Transformer,
    WholeWords,
    words,
)
from counterpoint.learn import (
    BM25Terms,
    Build,
    CachedContrastive,
    Contrastive,
    Example,
    Fit,
    FromData,
    GateSparsity,
    MarginMSE,
    NegativeCache,
    NegativeLogLikelihood,
    NoImprovement,
    Orthogonality,
    PositiveDistance,
    ResidualMargin,
    RouterBalance,
    TermSparsity,
    Train,
    TrainingSet,
)
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, check, check_data
from counterpoint.score import Dot, MaxSim, ZScore
from counterpoint.transform import Nice, Normalise, Whitening


def encoder(source="some/model", **heads):
    return Encoder(Transformer(source), heads or {"mean": Mean()})


def train(objective=None, scorer=None, **changes):
    return Train(objective or Contrastive(), scorer or Dot("mean"), **changes)


def stages(*found):
    return {"stages": list(found)}


def model(**arguments):
    return {"model": Model(DualEncoder(**{"query": encoder(), **arguments})), "search": None}


FAULTS = {
    "no stage": (stages(), "stages: there is none"),
    "one name twice": (stages(train(), train()), "2 of them are named 'train'"),
    "a name that is a path": (stages(train(name="../x")), "cannot be that of a file"),
    "BM25 without its vectors": (
        stages(train(Contrastive() + Orthogonality("mean"))),
        "stages.train: orthogonality compares the model with BM25; give the stage lexical=BM25Terms()",
    ),
    "BM25's vectors for nothing": (
        stages(train(lexical=BM25Terms())),
        "stages.train: lexical: no loss of this stage uses it",
    ),
    "a margin without negatives": (
        stages(train(ResidualMargin(), lexical=BM25Terms())),
        "residual_margin compares a query's own documents",
    ),
    "orthogonal to no set": (
        stages(train(Orthogonality("cls"), lexical=BM25Terms())),
        "there is no vector set 'cls'",
    ),
    "orthogonal vectors of many": (
        stages(train(Contrastive() + Orthogonality("tokens"), lexical=BM25Terms())),
        "stages.train: orthogonality takes one vector per text, and 'tokens' has several; name a pooled set",
    ),
    "a distance of many vectors": (
        stages(train(Contrastive() + PositiveDistance("tokens"))),
        "stages.train: positive_distance takes one vector per text, and 'tokens' has several",
    ),
    "the terms of no terms": (
        stages(train(Contrastive() + TermSparsity("mean"))),
        "stages.train: term_sparsity: 'flops' is by term, and the rows of 'mean' have no ids; name a set",
    ),
    "the terms of a router's whole vector": (
        {
            **model(query=encoder(mean=Mean(), routed=Routed(Router()))),
            **stages(train(Contrastive() + TermSparsity("routed.router"))),
        },
        "the rows of 'routed.router' have no ids",
    ),
    "a turn of nothing": (
        stages(train(alternate=("query.*", "documents.*"))),
        "stages.train: alternate: 'documents.*' matches no parameter",
    ),
    "a build too early": (stages(Build(), train()), "'train' changes the model afterwards"),
    "sets that differ": (model(document=encoder(cls=Cls())), "queries become mean, documents cls"),
    "a transform on nothing": (
        {"model": Model(DualEncoder(encoder()), {"words": [Normalise()]})},
        "model.transforms: there is no vector set 'words'; there are mean",
    ),
    "a transform that nothing fits": (
        {"model": Model(DualEncoder(encoder()), {"mean": [Whitening(8), Normalise()]})},
        "model.transforms.mean: no stage fits Whitening; add Fit('mean') to the stages",
    ),
    "a transform of longer vectors": (
        {
            "model": Model(
                DualEncoder(encoder(tokens=TokenVectors(projection=Linear(4)))), {"tokens": [Whitening(8)]}
            ),
            "search": None,
            **stages(train(None, MaxSim("tokens")), Fit("tokens")),
        },
        "model.transforms.tokens: Whitening takes 8 components, and the vectors have 4",
    ),
    "a transform of what a shared layer makes": (
        {
            "model": Model(
                DualEncoder(encoder(mean=Mean(Linear(8))), shared={"mean": Linear(3)}),
                {"mean": [Whitening(8)]},
            ),
            "search": None,
            **stages(train(), Fit("mean")),
        },
        "model.transforms.mean: Whitening takes 8 components, and the vectors have 3",
    ),
    "a shared layer on nothing": (
        model(shared={"cls": Linear(3)}),
        "model.shared: there is no vector set 'cls'",
    ),
    "a gate on nothing": (model(gates={"cls": Gate()}), "model.gates: there is no vector set 'cls'"),
    "a gate that is to close and is not there": (
        stages(train(Contrastive() + 0.1 * GateSparsity("mean"))),
        "gate_sparsity closes the gate of 'mean', and the model has none there; give it DualEncoder(",
    ),
    "a router that is not there": (
        stages(train(Contrastive() + 0.1 * RouterBalance("mean"))),
        "router_balance needs the router of 'mean', which has none; make it Routed(Router())",
    ),
    "a router's vector where it is no loss's": (
        {
            **model(query=encoder(mean=Mean(), routed=Routed(Router()))),
            **stages(train(Contrastive(scorer=Dot("routed.router")), Dot("routed.router"))),
        },
        "stages.train.scorer: there is no vector set 'routed.router'; there are mean, routed",
    ),
    "a source that is not there": (
        model(query=encoder("./no/such/folder")),
        "model.encoder.query.backbone.source: no such folder",
    ),
    "a start that is not there": (
        {"start": "no/such/run"},
        "start: no/such/run: no such folder of a run or model",
    ),
    "a start that is no model": ({"start": "."}, "start: .: this folder holds neither a run nor a model"),
    "a loss on nothing": (
        stages(train(Contrastive(scorer=MaxSim("words")))),
        "stages.train.objective.scorer: there is no vector set 'words'; there are mean, tokens",
    ),
    "a loss in a sum on nothing": (
        stages(train(Contrastive() + 0.1 * Contrastive(name="b", scorer=MaxSim("words")))),
        "stages.train.objective.losses.1.scorer: there is no vector set 'words'",
    ),
    "a scorer on nothing": (
        stages(train(None, Dot("cls"))),
        "stages.train.scorer: there is no vector set 'cls'",
    ),
    "part of a scorer on nothing": (
        stages(train(None, Dot("mean") + MaxSim("words"))),
        "stages.train.scorer.parts.1: there is no vector set 'words'",
    ),
    "a pooled score of many": (
        stages(train(None, Dot("tokens"))),
        "Dot takes one vector per text, and 'tokens' has",
    ),
    "no scorer": (stages(Train(Contrastive())), "stages.train: no scorer"),
    "a shared scorer on nothing": (
        {**stages(Train(Contrastive())), "scorer": Dot("cls")},
        "scorer: there is no vector set 'cls'",
    ),
    "a fit of nothing": (stages(train(), Fit("words")), "stages.fit: there is no vector set 'words'"),
    "a fit without a projection": (
        stages(train(), Fit("mean", what="projection")),
        "stages.fit: fits the projection of 'mean', which needs one encoder for both sides and a head with",
    ),
    "a fit of no tokens": (
        stages(train(), Fit("mean", what="tokenwise")),
        "stages.fit: fits the tokenwise maps of 'mean', which needs one encoder for both sides and a head",
    ),
    "a fit without transforms": (stages(train(), Fit("mean")), "the model has none on that set"),
    "idf that is not counted": (
        stages(train(scorer=MaxSim("tokens", idf=1.0)), Fit("tokens", what="idf")),
        "MaxSim(tokens) weights by idf, which no earlier stage has counted; put Fit('tokens'",
    ),
    "a pattern for nothing": (stages(train(learn=("querry.*",))), "learn: 'querry.*' matches no parameter"),
    "a frozen nothing": (stages(train(freeze=("document.*",))), "freeze: 'document.*' matches no parameter"),
    "a pattern into nothing": (stages(train(learn=("query.heads.cls.*",))), "'query.heads.cls.*' matches no"),
    "a stop by what is not measured": (
        {**stages(train(stop=NoImprovement("RR@10"))), "measures": ("nDCG@10",)},
        "stages.train: stop: uses RR@10, which is not evaluated",
    ),
    "the best by nothing": ({"measures": ()}, "keep='best' needs a measure"),
    "no development": (
        {"data": DataSettings(development=None, held_out=0)},
        "keep='best' and a stop rule need development queries",
    ),
    "an unknown measure": ({"measures": ("nDCG@10", "nDGC@5")}, "measures: unknown measure 'nDGC@5'"),
    "nothing to contrast with": (
        stages(train(batch=1)),
        "contrastive needs other queries in the batch; batch is 1",
    ),
    "no negatives": (stages(train(NegativeLogLikelihood())), "give the stage negatives"),
    "no cache": (stages(train(CachedContrastive())), "cached_contrastive draws from a negative cache"),
    "a cache for nothing": (
        stages(train(MarginMSE(), cache=NegativeCache(), negatives=(FromData(),))),
        "cache: no loss of this stage uses it",
    ),
    "a cache for a loss with a teacher": (
        stages(train(MarginMSE() + CachedContrastive(), cache=NegativeCache())),
        "margin_mse compares a query's own documents; give the stage negatives",
    ),
    "a loss that reads its set": (
        stages(train(Contrastive() + Orthogonality("cls"), lexical=BM25Terms())),
        "stages.train.objective.losses.1: there is no vector set 'cls'",
    ),
    "two scales": (
        stages(train(CachedContrastive(scale=20.0), cache=NegativeCache(on="mean"))),
        "cache: negatives are drawn with scale 1, but cached_contrastive has scale 20",
    ),
    "draws that no loss reads": (
        stages(
            train(
                MarginMSE() + 0.5 * CachedContrastive(name="drawn"),
                cache=NegativeCache(draws=2),
                negatives=(FromData(),),
            )
        ),
        "cache: draws is 2, and drawn reads 1 per query; use 1",
    ),
    "a cache on nothing": (
        stages(train(CachedContrastive(), cache=NegativeCache(on="cls"))),
        "stages.train.cache: there is no vector set 'cls'",
    ),
    "a search setting of another type": ({"search": {"weights": 3}}, "search.weights: expected a table"),
    "feedback that cannot be": (
        {"search": {"feedback": -1.0}},
        "search.feedback: expected a weight from 0 up",
    ),
    "an exact set that is none": (
        {"search": {"weights": {"tokens": 1.0}, "exact": ["words"]}},
        "search.exact: there is no vector set 'words'",
    ),
    "a floor that is no list": ({"search": {"floor": "tokens"}}, "search.floor: expected a list"),
    "an unknown search setting": ({"search": {"weight": {}}}, "search: unknown setting 'weight'"),
    "a weight of nothing": (
        {"search": {"weights": {"cls": 1.0}}},
        "search.weights: there is no vector set 'cls'",
    ),
    "another type": (stages(train(None, Dot(3))), "stages.0.scorer.on: expected a text, found 3"),
    "no stage at all": (stages(Dot("mean")), "stages.0: expected a Stage, found a Dot"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone(name):
    changes, message = FAULTS[name]
    (fault,) = check(declared(**changes))
    assert message in fault


@pytest.mark.parametrize(
    "changes",
    [
        stages(train(), Build()),
        stages(train(learn=("query.backbone.*", "query.heads.tokens.projection.linear_.weight", "*.bias"))),
        stages(train(freeze=("query.backbone.model_.embeddings.*", "quer?.*"))),
        stages(train(NegativeLogLikelihood(), negatives=(FromData(),), batch=1)),
        stages(train(CachedContrastive(), cache=NegativeCache(on="mean"))),
        stages(train(CachedContrastive(scale=20.0), cache=NegativeCache(on="mean", scale=20.0))),
        stages(train(CachedContrastive() + Contrastive(), cache=NegativeCache(on="mean", draws=4))),
        stages(train(Contrastive(), cache=NegativeCache(on="mean", draws=4, scale=5.0))),
        stages(train(NegativeLogLikelihood(), cache=NegativeCache(on="mean"), batch=1)),
        stages(train(MarginMSE(), MaxSim("tokens"), negatives=(FromData(),))),
        stages(train(Contrastive() + TermSparsity("tokens") + TermSparsity("mean", "l1", name="l1"))),
        stages(train(Contrastive() + Orthogonality("mean"), lexical=BM25Terms())),
        {**stages(Train(Contrastive()), Train(Contrastive(), name="again")), "scorer": Dot("mean")},
        {**stages(train(keep="last")), "data": DataSettings(development=None, held_out=0)},
        {
            "model": Model(DualEncoder(encoder()), {"mean": [Whitening(8)]}),
            **stages(train(), Fit("mean"), Build()),
        },
        {**model(document=encoder("other/model")), **stages(train(freeze=("document.*",)))},
        stages(Fit("tokens", what="idf"), train(Contrastive(scorer=ZScore(MaxSim("tokens", idf=1.0))))),
        {**model(shared={"mean": Linear(3)}), **stages(train(learn=("shared.*", "query.*")))},
        {"search": {"weights": {"lexical": 1.0, "tokens": 1.0}, "idf": {"tokens": 0.5}}},
    ],
)
def test_what_is_right_has_no_fault(changes):
    assert check(declared(**changes)) == []


def test_a_stemmer_that_is_not_installed_is_told_before_training(monkeypatch):
    recipe = declared(**model(query=encoder(mean=Mean(), words=WholeWords(stem="nltk"))), **stages(train()))
    assert check(recipe) == []
    words._nltk_stem.cache_clear()
    monkeypatch.setitem(sys.modules, "nltk.stem.porter", None)
    (fault,) = check(recipe)
    assert "words.stem: stem='nltk' needs the package 'nltk'" in fault


def test_all_faults_at_once():
    faults = check(
        declared(
            model=Model(DualEncoder(encoder("./nowhere"))),
            stages=[train(None, Dot("cls"), batch=1), train(MarginMSE(), learn=("x.*",))],
            measures=("nope",),
            search={"weights": {"cls": 1.0}},
        )
    )
    for needle in (
        "named 'train'",
        "./nowhere",
        "'cls'",
        "batch is 1",
        "negatives",
        "'x.*'",
        "'nope'",
        "search.w",
    ):
        assert any(needle in fault for fault in faults), needle


def test_a_model_that_is_loaded_is_no_recipe(tiny_bert_folder):
    recipe = declared(tiny_bert_folder)
    recipe.model.setup()
    (fault,) = check(recipe)
    assert "recipe.model: is set up already" in fault


def test_a_set_with_a_backbone_of_its_own_has_that_one_s_length(tiny_bert_folder, tmp_path):
    other = save_tiny_bert(tmp_path / "other", dim=24)
    both = Encoder(
        Transformer(str(tiny_bert_folder)), {"mean": Mean()}, own={"mean": Transformer(str(other))}
    )
    for dim, faults in ((24, 0), (16, 1)):
        made = {"model": Model(DualEncoder(both), {"mean": [Whitening(dim)]})}
        found = check(declared(**made, **stages(train(), Fit("mean"))))
        assert (
            len([each for each in found if "Whitening takes 16 components, and the vectors have 24" in each])
            == faults
        )


def test_a_backbone_on_disk_says_how_long_its_vectors_are(tiny_bert_folder):
    dim = json.loads((tiny_bert_folder / "config.json").read_text())["hidden_size"]
    for second, faults in ((4, 0), (dim, 1)):
        chain = {"mean": [Whitening(dim, 4), Nice(second)]}
        made = {"model": Model(DualEncoder(encoder(str(tiny_bert_folder), mean=Mean())), chain)}
        found = check(declared(**made, **stages(train(), Fit("mean"))))
        assert [each for each in found if "Nice takes" in each] == found
        assert (
            found == [f"model.transforms.mean: Nice takes {dim} components, and the vectors have 4"] * faults
        )


@pytest.mark.parametrize("saved", [False, True], ids=["by transformers", "by us"])
def test_masking_needs_a_mask_token(tiny_bert_folder, tmp_path, saved):
    masked = [replace(declared().stages[0], mask_matches=0.15)]
    assert check(declared(tiny_bert_folder, stages=masked)) == []
    assert check(declared("some/model", stages=masked)) == [], "the hub is not asked"
    bare = without_mask(tiny_bert_folder, tmp_path / "bare")
    if saved:
        declared(bare).model.setup().save(tmp_path / "saved")
        bare = tmp_path / "saved"
    for found in (declared(bare), declared(model=InteractiveEncoder(Transformer(str(bare)), Linear(1)))):
        assert not [fault for fault in check(found) if "mask" in fault]
    (fault,) = check(declared(bare, stages=masked))
    assert "stages.train: mask_matches" in fault and "this vocabulary has none" in fault
    assert check(declared(bare, stages=[replace(masked[0], hide="drop")])) == []
    judge = InteractiveEncoder(Transformer(str(bare)), Linear(1))
    pairs = [Train(NegativeLogLikelihood(), mask_matches=0.15, negatives=(FromData(),))]
    (fault,) = check(declared(model=judge, search=None, stages=pairs))
    assert "this vocabulary has none" in fault
    if not saved:
        (bare / "tokenizer.json").write_text("{")
        (fault,) = check(declared(bare, stages=masked))
        assert "the tokenizer cannot be read" in fault


def without_mask(folder, target):
    """The same model with a tokenizer that names no mask token."""
    target.mkdir()
    copy(folder, target)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (target / name).is_file():
            said = json.loads((target / name).read_text())
            said.pop("mask_token", None)
            (target / name).write_text(json.dumps(said))
    return target


def test_distillation_needs_a_teacher_or_scores():
    texts = {"d1": "one", "d2": "two"}
    example = Example("q", ("d1",), ("d2",))
    data = TrainingSet({"q": "?"}, texts, (example,), {"q": frozenset({"d1"})})
    recipe = declared(stages=[train(MarginMSE(), negatives=(FromData(),))])
    (fault,) = check_data(recipe, data)
    assert "stages.train: margin_mse learns from a teacher's scores" in fault
    scored = replace(data, examples=(replace(example, scores={"d1": 2.0, "d2": 1.0}),))
    assert check_data(recipe, scored) == [] and check_data(declared(), data) == []

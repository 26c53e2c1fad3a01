"""Recipes as TOML and back, where they come from, and that declaring loads nothing."""

import tomllib
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recipe.small import declared, write_recipe

from counterpoint.config import Declared, class_named, plain
from counterpoint.encode import Transformer
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.learn import BM25Negatives, Contrastive, Fit, MarginMSE, NoImprovement, Orthogonality, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe, check, differences, load_recipe, shipped_recipes, variants_of
from counterpoint.recipe.source import parts_to_install
from counterpoint.score import Dot, MaxSim, Mix
from counterpoint.transform import Whitening
from counterpoint.typed import hints_of

# -- TOML ----------------------------------------------------------------------------------------------

numbers = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
trains = st.builds(
    Train,
    objective=st.sampled_from([Contrastive(), MarginMSE() + 0.1 * Contrastive(name="dense")]),
    scorer=st.sampled_from(
        [None, Dot("mean") + 0.3 * MaxSim("tokens"), Mix([Dot("mean"), MaxSim("tokens")])]
    ),
    name=st.text(min_size=1),
    steps=st.none() | st.integers(1, 10**9),
    lr=numbers,
    clip=st.none() | numbers,
    warmup=numbers,
    learn=st.lists(st.text(), min_size=1).map(tuple),
    negatives=st.sampled_from([(), (BM25Negatives(count=2, depth=7),)]),
    stop=st.sampled_from([None, NoImprovement("R@5", patience=2)]),
)


@settings(max_examples=40, deadline=None)
@given(stages=st.lists(trains, max_size=3), about=st.text(), seed=st.integers(0, 2**62))
def test_toml_holds_all_of_a_recipe(stages, about, seed):
    recipe = declared(stages=stages, about=about, seed=seed)
    text = recipe.to_toml()
    again = Recipe.from_toml(text)
    assert again.to_toml() == text
    assert again.to_dict() == recipe.to_dict() and again.fingerprint() == recipe.fingerprint()


def test_toml_names_defaults():
    written = tomllib.loads(declared().to_toml())
    stage = written["recipe"]["stages"][0]
    assert written["format"] == 1 and stage["epochs"] == 1 and stage["objective"]["temperature"] == 1.0
    assert "teacher" not in stage  # None by default, and TOML has no word for it


def test_none_survives_where_it_is_no_default():
    (stage,) = declared().stages
    recipe = declared(stages=[Train(stage.objective, stage.scorer, clip=None)])
    assert Recipe.from_toml(recipe.to_toml()).stages[0].clip is None


def test_fingerprints_differ_by_a_setting_and_by_where_the_model_comes_from():
    prints = {r.fingerprint() for r in (declared(), declared(), declared(seed=2), declared("other/model"))}
    assert len(prints) == 3


@pytest.mark.parametrize(
    "change, needles",
    [
        (("format = 1", "format = 2"), ("format = 1", "recipe format 2")),
        (("lr = 0.001", 'lr = "1e-3"'), ("recipe.stages.0.lr: expected a number, found '1e-3'",)),
        (("lr = 0.001", "ls = 0.001"), ("unknown argument 'ls'",)),
        (('on = "mean"', 'on = ["mean"]'), ("recipe.stages.0.scorer.on: expected a text",)),
        (
            ("counterpoint.score:Dot", "counterpoint.learn:MarginMSE"),
            ("expected a Scorer or None, found a Mar",),
        ),
        (("counterpoint.score:Dot", "counterpoint.score:Dott"), ("unknown part 'counterpoint.score:Dott'",)),
        (('keep = "best"', 'keep = "good"'), ("keep: expected one of 'best', 'last', found 'good'",)),
        (("batch = 4", "batch = 0"), ("batch must be at least 1",)),
        (('on = "mean"', ""), ("stages.0.scorer: Dot: 'on' is missing",)),
        (("[recipe]", "[recipe"), ("not valid TOML",)),
        (("[recipe.data]", "[recipe.date]"), ("unknown argument 'date'; did you mean 'data'?",)),
    ],
)
def test_what_is_wrong_in_toml_is_named(change, needles):
    text = declared().to_toml()
    assert change[0] in text
    with pytest.raises((ConfigError, ArtifactError)) as error:
        Recipe.from_toml(text.replace(*change, 1), "mine.toml")
    assert "mine.toml" in str(error.value)
    for needle in needles:
        assert needle in str(error.value)


def test_all_faults_of_a_toml_file_at_once():
    text = declared().to_toml().replace("lr = 0.001", 'lr = "x"').replace("seed = 1", "seed = 1.5")
    with pytest.raises(ConfigError) as error:
        Recipe.from_toml(text.replace('codec = "int8"', 'codec = "int9"'))
    assert len(error.value.faults) == 3


def test_a_copy_is_trained_and_the_original_stays_declared(tiny_bert_folder):
    recipe = declared(tiny_bert_folder)
    model = recipe.copy().declared_model().setup()
    assert model.is_set_up and not recipe.model.is_set_up and check(recipe) == []


def test_search_settings_of_the_recipe_go_into_its_model():
    recipe = declared(search={"weights": {"tokens": 2.0}})
    assert recipe.declared_model().search == {"weights": {"tokens": 2.0}}
    assert recipe.declared_model().encoder is recipe.model.encoder
    assert declared().declared_model() is not None and declared().declared_model().search["weights"] == {
        "mean": 1.0
    }
    bare = declared(model=declared().model.encoder, search={"weights": {"mean": 3.0}}).declared_model()
    assert isinstance(bare, Model) and bare.search == {"weights": {"mean": 3.0}}


def test_differences_name_paths():
    one = {"a": 1, "b": [1, {"c": 2}], "d": {"e": 1}}
    other = {"a": 1, "b": [1, {"c": 3}, 4], "d": {}}
    assert list(differences(one, other)) == [("b.1.c", 2, 3), ("b.2", None, 4), ("d.e", 1, None)]


def test_annotations_of_everything_declared_can_be_read():
    def below(cls):
        return {found for child in cls.__subclasses__() for found in (child, *below(child))}

    ours = [cls for cls in below(Declared) if cls.__module__.startswith("counterpoint.")]
    assert {Recipe, Train, Fit, Transformer, Whitening} <= set(ours)
    for cls in ours:
        if cls.__init__ is not object.__init__:
            assert hints_of(cls).keys() >= cls.parameters_of().keys() - {"args", "kwargs"}, cls


# -- where recipes come from ---------------------------------------------------------------------------


def test_shipped_recipes_have_no_fault_and_load_nothing():
    assert {"colbert", "colbert-paper", "daft", "daft-paper", "dpr", "dpr-paper"} <= shipped_recipes().keys()
    for name, path in shipped_recipes().items():
        recipe = load_recipe(name)
        assert recipe.name == name and recipe.paper and recipe.about
        assert check(recipe) == []
        assert not any(part.is_set_up for part in recipe.model._all_parts().values())
        assert len(path.read_text().splitlines()) <= 50


@pytest.mark.parametrize("name", ["roc", "roc-paper"])
def test_ablations_of_roc_differ_in_what_they_are_called_by(name):
    """Terms of the objective, whether there are BM25's vectors, and the share of matches that is hidden."""
    nll, both = ["Contrastive"], ["Contrastive", "Orthogonality"]
    expected = {
        "": (both, True, 0.15),
        ":embedding": (both, True, 0),
        ":input": (nll, False, 0.15),
        ":naive": (nll, False, 0),
        ":clear": (["ResidualMargin"], True, 0),
    }
    for variant, (terms, lexical, share) in expected.items():
        (stage,) = load_recipe(name + variant).stages
        found = getattr(stage.objective, "losses", [stage.objective])
        assert sorted(type(loss).__name__ for loss in found) == terms
        assert (stage.lexical is not None, stage.mask_matches) == (lexical, share)


@pytest.mark.parametrize("variant", ["", ":embedding", ":input", ":naive", ":clear"])
def test_only_what_is_orthogonal_is_said_to_be(variant):
    recipe = load_recipe(f"roc{variant}")
    losses = getattr(recipe.stages[0].objective, "losses", [])
    found = any(isinstance(loss, Orthogonality) for loss in losses)
    assert ("orthogonal" in recipe.about) == found and "to be added to BM25" in recipe.about


def test_variants_of_shipped_recipes_have_no_fault_and_differ():
    found = {
        f"{name}:{variant}": load_recipe(f"{name}:{variant}")
        for name, path in shipped_recipes().items()
        for variant in variants_of(path)
    }
    assert {"hil-paper:without-idf", "hil-paper:h-only", "colbert-isotropy:aniso"} <= found.keys()
    for name, recipe in found.items():
        assert recipe.name == name and check(recipe) == []
    prints = [replace(recipe, name="").fingerprint() for recipe in found.values()]
    assert len(set(prints)) == len(prints)


def test_a_variant_that_is_none(tmp_path):
    with pytest.raises(ConfigError, match="hil-paper has no variant 'x'; it has without-regularisers, "):
        load_recipe("hil-paper:x")
    with pytest.raises(ConfigError, match="dpr has no variant 'x'; it has none"):
        load_recipe("dpr:x")
    path = write_recipe(tmp_path / "mine.py")
    path.write_text(path.read_text() + "\nvariants = {'wrong': ['stages.0.bacth=1'], 'seed': ['seed=9']}\n")
    assert load_recipe(f"{path}:seed").seed == 9
    with pytest.raises(ConfigError, match="variant 'wrong': --set stages.0.bacth=1: .*did you mean 'batch'"):
        load_recipe(f"{path}:wrong")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            'Train(None, epochs="ten", lr="fast")',
            r"train: epochs must be a number, found 'ten'.*lr must be a",
        ),
        ('Train(None, lr_factors={"a": "b"})', r"train: lr_factors\['a'\] must be a number, found 'b'"),
        ("Train(None, mask_matches=None)", "train: mask_matches must be a number, found None"),
        ('BM25Negatives(count="two")', "BM25Negatives: count must be a number, found 'two'"),
    ],
)
def test_a_wrong_type_in_a_file_is_told_with_its_line(tmp_path, monkeypatch, setting, said):
    text = f"from counterpoint.learn import BM25Negatives, Train\n\nrecipe = {setting}\n"
    (tmp_path / "typo.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for path in ("typo.py", tmp_path / "typo.py"):
        with pytest.raises(ConfigError, match=rf"(?s)typo\.py:3: .*{said}"):
            load_recipe(path)


def test_a_file_that_is_not_there(tmp_path):
    for name in ("mine.py", "mine.toml", f"{tmp_path}/run"):
        with pytest.raises(ConfigError, match=f"{name}: no such file or folder"):
            load_recipe(name)


def test_a_model_of_its_own_file_is_told(tmp_path):
    path = write_recipe(tmp_path / "own.py")
    path.write_text(
        path.read_text() + "\nfrom counterpoint.encode import Mean\nclass MyMean(Mean): pass\n"
        "recipe.model.encoder.query.heads['mine'] = MyMean()\n"
    )
    assert parts_to_install(load_recipe(path)) == ["recipe_own:MyMean"]
    assert parts_to_install(load_recipe("colbert")) == []
    with pytest.raises(
        ArtifactError, match=r"'recipe_else:MyMean'; it is defined in the recipe file else.py"
    ):
        class_named("recipe_else:MyMean")


def test_hil_is_as_the_paper_has_it():
    """Section A.3: ColBERT's settings, λ = −0.3; the regularisers' signs as PAPERS has them."""
    recipe = load_recipe("hil-paper")
    encoder, stage = recipe.model.encoder.query, recipe.stages[-1]
    assert (stage.lr, stage.batch, stage.steps) == (3e-6, 32, 200_000)
    assert (encoder.query.expand_to, encoder.document.max_length) == (32, 180)
    assert [encoder.heads[on].projection.dim for on in "lh"] == [128, 128]
    late_l, late_h, iso_l, iso_h = stage.objective.losses
    assert (iso_l.on, iso_l.weight, iso_l.absolute) == ("l", 0.3, True)
    assert (iso_h.on, iso_h.weight, iso_h.absolute) == ("h", -0.3, False)
    assert (late_l.scorer.of.idf, late_h.scorer.of.idf) == (1.0, 0.0)
    assert load_recipe("colbert-isotropy").stages[0].objective.losses[1].weight == 0.4
    terms = {
        "aniso": ("InterIso", -0.1), "cosreg-iso": ("CosReg", 0.2), "cosreg-aniso": ("CosReg", -0.1),
        "istar-iso": ("IStar", 0.2), "istar-aniso": ("IStar", -0.6),
    }  # fmt: skip
    for variant, wanted in terms.items():
        term = load_recipe(f"colbert-isotropy:{variant}").stages[0].objective.losses[1]
        assert (type(term).__name__, term.weight) == wanted


@pytest.mark.parametrize("name", ["colbert-lambda", "colbert-lambda-paper"])
def test_the_ensemble_of_hil_has_both_modules_and_the_same_weights(name):
    """Section 3.2 and A.3: λ 0.4 and −0.1; 0.2 and −0.1 for CosReg, 0.2 and −0.6 for I-STAR; scores added."""
    rows = {"": ("InterIso", 0.4, -0.1), ":cosreg": ("CosReg", 0.2, -0.1), ":istar": ("IStar", 0.2, -0.6)}
    for variant, (kind, *weights) in rows.items():
        recipe = load_recipe(name + variant)
        encoder, stage = recipe.model.encoder.query, recipe.stages[-1]
        assert encoder.backbone_of("iso") is encoder.backbone
        assert encoder.backbone_of("aniso") is not encoder.backbone and len(encoder.backbones) == 2
        *late, iso, aniso = stage.objective.losses
        assert [type(one).__name__ for one in (iso, aniso)] == [kind] * 2
        assert [iso.weight, aniso.weight] == weights and (iso.on, aniso.on) == ("iso", "aniso")
        assert [type(loss).__name__ for loss in late] == ["PairwiseCrossEntropy"] * 2
        assert recipe.model.search["weights"] == {"iso": 1.0, "aniso": 1.0} and stage.clip is None
    assert recipe.model.search["scale"] == "none"


def test_rows_of_hil_with_markers_and_with_300_positions():
    """[MASK] expansion and markers where a recipe has none (docs/hil.md); table 9's length of documents."""
    for name in ("hil", "colbert", "colbert-lambda", "citadel-hil", "citadel-hil-paper"):
        plain, marked = (load_recipe(name + end).model.encoder.query for end in ("", ":marked"))
        assert plain.query.marker is plain.document.marker is plain.query.expand_to is None
        found = marked.query.marker, marked.query.expand_to, marked.document.marker, marked.document.expand_to
        assert found == ("[unused0]", 32, "[unused1]", None)
    for name in ("hil-paper", "colbert-paper", "colbert-isotropy", "colbert-lambda-paper"):
        encoder = load_recipe(name).model.encoder.query
        assert encoder.query.expand_to == 32 and encoder.document.marker == "[unused1]"
    for name in ("hil", "colbert", "hil-paper", "colbert-paper"):
        lengths = [load_recipe(name + end).model.encoder.query.document.max_length for end in ("", ":beir")]
        assert lengths == [180, 300]


def test_colbert_is_as_the_paper_has_it():
    recipe = load_recipe("colbert-paper")
    encoder, stage = recipe.model.encoder.query, recipe.stages[0]
    assert (stage.lr, stage.batch, stage.steps) == (3e-6, 32, 200_000)
    assert (encoder.query.expand_to, encoder.document.max_length) == (32, 180)
    assert encoder.heads["tokens"].projection.dim == 128


MAPS = {"whitening": ["Whitening"], "nice": ["Nice"], "glow": ["Glow"]}


def kinds(steps):
    return [type(step).__name__ for step in steps if type(step).__name__ != "Normalise"]


def test_isotropic_dr_is_trained_as_its_scripts_have_it():
    """Section 5.1 and the released scripts: rate 1e-5 where 1e-4 is printed, Adam, 30 epochs of 64 steps."""
    for name, lengths, scorer in (
        ("isotropy-paper", (21, 512), MaxSim("tokens", normalise=True)),
        ("repbert-paper", (22, 512), Dot("mean", normalise=True)),
    ):
        recipe = load_recipe(name)
        encoder, stage = recipe.model.encoder.query, recipe.stages[0]
        assert (stage.lr, stage.batch, stage.steps, stage.evaluate_every) == (1e-5, 16, 30 * 64, 64)
        assert (stage.weight_decay, stage.warmup, stage.schedule, stage.clip) == (0, 0, "constant", None)
        assert type(stage.objective).__name__ == "PairwiseSoftmax"
        assert stage.scorer.to_dict() == scorer.to_dict()
        assert (encoder.query.max_length, encoder.document.max_length) == lengths
        assert all(head.projection is None for head in encoder.heads.values())
        assert recipe.measures[0] == "P@20" and stage.keep == "best"


@pytest.mark.parametrize("name, flat", [("isotropy", ["Whitening"]), ("isotropy-paper", [])])
def test_isotropy_maps_tokens_by_each_map_and_by_none(name, flat):
    """Section 4.1.1: of a model with many vectors only tokens can be mapped. MiniLM's are turned first."""
    expected = {"": ["Whitening"], ":nice": [*flat, "Nice"], ":glow": [*flat, "Glow"], ":finetuned": []}
    for variant, wanted in expected.items():
        recipe = load_recipe(name + variant)
        assert kinds(recipe.model.transforms["tokens"]) == wanted
        assert [type(stage).__name__ for stage in recipe.stages] == ["Train", "Fit"][: 1 + bool(wanted)]


@pytest.mark.parametrize("name, flat", [("repbert", ["Whitening"]), ("repbert-paper", [])])
def test_repbert_is_mapped_by_each_map_at_each_level(name, flat):
    """Table 2: every token before the mean, or the mean; cosines in either case, and in training."""
    plain = load_recipe(name)
    assert len(plain.stages) == 1 and not plain.model.transforms
    for kind, steps in MAPS.items():
        wanted = steps if kind == "whitening" else [*flat, *steps]
        token, text = load_recipe(f"{name}:{kind}-token"), load_recipe(f"{name}:{kind}-sequence")
        assert kinds(token.model.encoder.query.heads["mean"].tokenwise) == wanted
        assert not token.model.transforms and token.model.encoder.query.heads["mean"].normalise
        assert token.stages[1].what == "tokenwise"
        steps_of_text = list(text.model.transforms["mean"])
        assert kinds(steps_of_text) == wanted and type(steps_of_text[-1]).__name__ == "Normalise"
        head = text.model.encoder.query.heads["mean"]
        assert not head.normalise and not head.tokenwise and text.stages[1].what == "transforms"
        for recipe in (token, text):
            assert recipe.stages[0].to_dict() == plain.stages[0].to_dict() and recipe.stages[1].queries


def test_repbert_as_it_was_published():
    """Zhan et al. 2020: inner products, their own margin, 26 documents of 13 triples twice a step."""
    recipe = load_recipe("repbert-paper:margin")
    encoder, (stage,) = recipe.model.encoder.query, recipe.stages
    assert type(stage.objective).__name__ == "MultiLabelMargin" and stage.objective.margin == 1.0
    assert not stage.scorer.normalise and not encoder.heads["mean"].normalise
    assert (stage.lr, stage.warmup, stage.weight_decay, stage.clip) == (3e-6, 10_000, 0.01, 1.0)
    assert (stage.batch * (1 + stage.negatives[0].count), stage.accumulate) == (26, 2)
    assert (encoder.query.max_length, encoder.document.max_length) == (20 + 2, 256 + 2)
    assert "Zhan et al. 2020" in recipe.paper


def test_citadel_is_as_its_readme_has_it():
    encoder, stage = (recipe := load_recipe("citadel-paper")).model.encoder.query, recipe.stages[0]
    assert (stage.lr, stage.warmup, stage.weight_decay, stage.clip) == (2e-5, 3000, 0, 2)
    assert (stage.epochs, stage.batch * stage.accumulate, stage.negatives[0].count) == (10, 8 * 32, 7)
    assert stage.objective.weights == [1, 1, 1e-2, 1e-4]
    routed = encoder.heads["routed"]
    assert tuple(routed.keys) == (1, 5) and routed.projection.dim == 32 and not routed.normalise
    assert encoder.heads["cls"].projection.dim == 128 and routed.router.activation == "log"
    hil = load_recipe("citadel-hil-paper").model.encoder.query.heads["routed"]
    assert hil.normalise and hil.router.activation == "softmax"


def test_a_recipe_from_each_kind_of_source(tmp_path):
    path = write_recipe(tmp_path / "mine.py")
    recipe = load_recipe(path)
    assert recipe.name == "small"
    toml = tmp_path / "mine.toml"
    toml.write_text(recipe.to_toml())
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text(recipe.to_toml())
    for source in (toml, run, str(run)):
        assert load_recipe(source).fingerprint() == recipe.fingerprint()


@pytest.mark.parametrize(
    "name, text, needles",
    [
        ("a.py", "x = 1\nrecipe = y\n", ("a.py:2", "NameError", "'y'")),
        ("a.py", "x = (\n", ("a.py:1", "SyntaxError")),
        ("a.py", "x = 1\n", ("does not define it",)),
        ("a.py", "recipe = 1\n", ("defines a int",)),
        (
            "a.py",
            "from counterpoint.learn import *\n\nTrain(MarginMSE(), batch=0)\n",
            ("a.py:3", "batch must"),
        ),
        ("a.toml", "format = 1\n", ("expected a Recipe, found None",)),
        ("a.toml", "\xff", ("not UTF-8",)),
        ("a.yaml", "", ("is a .py or .toml file",)),
    ],
)
def test_files_that_are_no_recipe(tmp_path, name, text, needles):
    (tmp_path / name).write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError) as error:
        load_recipe(tmp_path / name)
    for needle in needles:
        assert needle in str(error.value)


def test_names_that_are_no_recipe(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'colbert'"):
        load_recipe("colbrt")
    with pytest.raises(ConfigError, match="not that of a run"):
        load_recipe(tmp_path)


def test_a_file_that_was_edited_is_read_anew(tmp_path):
    path = write_recipe(tmp_path / "edited.py", objective="Softer()")
    old = load_recipe(path)
    path.write_text(path.read_text().replace("0.5 *", "0.25 *"))
    new = load_recipe(path)
    assert type(new.copy().stages[0].objective) is type(new.stages[0].objective)
    with pytest.raises(ConfigError, match="stages.0.objective: recipe_edited:Softer has been redefined"):
        old.copy()


def test_a_run_with_a_class_that_is_not_imported_runs_no_code(tmp_path):
    text = declared().to_toml().replace("counterpoint.learn:Contrastive", "os:system")
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(ConfigError, match="unknown part 'os:system'"):
        load_recipe(tmp_path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (MarginMSE, r"found the class MarginMSE itself; write MarginMSE\(…\)"),
        (torch.nn.Identity(), "found Identity; derive it from Loss, Scorer, Transform, Head or Part"),
        (object(), "plain data or a declared object, found object$"),
    ],
)
def test_what_cannot_be_declared_is_told_with_a_remedy(value, words):
    with pytest.raises(ConfigError, match=words):
        plain(value)


def test_a_class_that_we_do_not_export_is_told():
    with pytest.raises(
        ArtifactError, match="unknown part 'counterpoint.encode:Attend'; counterpoint.encode exports no"
    ):
        class_named("counterpoint.encode:Attend")

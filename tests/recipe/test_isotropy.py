"""The recipes of Isotropic DR, each variant carried out to its end on a small collection."""

import json
from random import Random

import numpy as np
import pytest
from tests.encode.tiny import save_tiny_bert

from counterpoint.measure.isotropy import partition_isotropy
from counterpoint.model import load_model
from counterpoint.recipe import change, load_recipe, read_material, run_recipe, shipped_recipes, variants_of

SETS = {"isotropy": "tokens", "repbert": "mean"}
SHORT = {"part": "counterpoint.transform:FlowTraining", "steps": 1}


def runs(name):
    """A recipe and its variants, by name."""
    return [name, *(f"{name}:{variant}" for variant in variants_of(shipped_recipes()[name]))]


WORDS = (
    "wing flow heat shock plate wave drag lift blood cell gene drug library index term query user study "
    "river stone music light paper engine garden market winter bridge harbour letter"
).split()


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """450 documents of nine words, more than the 380 directions that a flow is fed; 40 queries of three."""
    folder, random = tmp_path_factory.mktemp("words"), Random(0)
    texts = {f"d{i}": " ".join(random.choices(WORDS, k=9)) for i in range(450)}
    queries = {f"q{i}": " ".join(texts[f"d{i}"].split()[:3]) for i in range(40)}
    for name, some in (("corpus", texts), ("queries", queries)):
        rows = [json.dumps({"_id": id_, "title": "", "text": text}) + "\n" for id_, text in some.items()]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    (folder / "qrels").mkdir()
    for split, numbers in (("train", range(30)), ("dev", range(30, 40))):
        rows = [f"q{i}\td{i}\t1\nq{i}\td{i + 50}\t0\n" for i in numbers]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return folder, list(texts.values())


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.filterwarnings("ignore:(Whitening|Nice|Glow)")  # 450 texts do not determine so many directions
@pytest.mark.parametrize("name", [name for shipped in SETS for name in runs(shipped)])
def test_each_variant_is_trained_to_its_end_and_makes_its_space_round(name, collection, tmp_path):
    folder, texts = collection
    recipe = change(load_recipe(name), ["stages.0.steps=1", "stages.0.batch=4"])
    model = load_model(run_recipe(recipe, read_material(recipe, folder), tmp_path / "run"))
    on = SETS[name.partition(":")[0]]
    mapped = model.encode_document(texts[:200])[on].values
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, rtol=1e-4)
    model.leave_out([on], [on])
    plain = model.encode_document(texts[:200])[on].values
    if len(recipe.stages) == 1:
        np.testing.assert_array_equal(mapped, plain)
    else:
        before, after = (partition_isotropy(rows, signs="positive") for rows in (plain, mapped))
        assert after > 0.8 > before


@pytest.fixture(scope="module")
def wide_bert(tmp_path_factory):
    """A random BERT with the components and positions of BERT-base."""
    return save_tiny_bert(tmp_path_factory.mktemp("wide-bert"), positions=512, dim=768)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:(Whitening|Nice|Glow)")
@pytest.mark.parametrize("name", [name for shipped in SETS for name in runs(f"{shipped}-paper")])
def test_each_variant_of_the_paper_is_carried_out_on_a_random_bert(name, collection, wide_bert, tmp_path):
    """As declared, but for the weights, one step, and one step of a flow."""
    folder, texts = collection
    small = [f"model.encoder.query.backbone.source={wide_bert}", "stages.0.steps=1"]
    on = SETS[name.partition("-")[0]]
    if name.endswith(("-token", "-sequence", ":nice", ":glow")) and "whitening" not in name:
        place = "model.encoder.query.heads.mean.tokenwise" if "-token" in name else f"model.transforms.{on}"
        small.append(f"{place}.0.fitting={SHORT}")
    recipe = change(load_recipe(name), small)
    model = load_model(run_recipe(recipe, read_material(recipe, folder), tmp_path / "run"))
    lengths = np.linalg.norm(model.encode_document(texts[:20])[on].values, axis=1)
    assert model.sets[on].dim == 768 and np.allclose(lengths, 1, rtol=1e-4) == (":margin" not in name)

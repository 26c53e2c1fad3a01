"""The recipes of Isotropic DR with each of their maps, on enough texts for these to make a space round."""

import json
from random import Random

import numpy as np
import pytest

from counterpoint.loading import load_model
from counterpoint.measure.isotropy import partition_isotropy
from counterpoint.recipe import (
    change,
    load_recipe,
    read_recipe_data,
    run_recipe,
    shipped_recipes,
    variants_of,
)

SETS = {"isotropy": "tokens", "repbert": "mean"}
MAPPED = ["isotropy", "isotropy:nice", "isotropy:glow"]
MAPPED += [f"repbert:{name}" for name in variants_of(shipped_recipes()["repbert"]) if name != "margin"]
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
        rows = [f"q{i}\td{i}\t1\n" for i in numbers]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return folder, list(texts.values())


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.filterwarnings("ignore:(Whitening|Nice|Glow)")  # 450 texts do not determine so many directions
@pytest.mark.parametrize("name", MAPPED)
def test_each_map_is_fitted_behind_the_training_and_makes_the_space_round(name, collection, tmp_path):
    folder, texts = collection
    recipe = change(load_recipe(name), ["stages.0.steps=1", "stages.0.batch=4"])
    model = load_model(run_recipe(recipe, read_recipe_data(recipe, folder), tmp_path / "run"))
    on = SETS[name.partition(":")[0]]
    mapped = model.encode_document(texts[:200])[on].values
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, rtol=1e-4)
    model.leave_out([on], [on])
    plain = model.encode_document(texts[:200])[on].values
    before, after = (partition_isotropy(rows, signs="positive") for rows in (plain, mapped))
    assert after > 0.8 > before

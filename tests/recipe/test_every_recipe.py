"""Every recipe that is shipped, and every variant of it, trains to its end on tiny backbones."""

import json

import numpy as np
import pytest
from tests.encode.tiny import VOCABULARY, tiny_tokenizer
from tests.recipe.small import WORDS, write_collection

from counterpoint.encode import InteractiveEncoder, Router, Transformer
from counterpoint.learn import Fit, Train
from counterpoint.loading import load_model
from counterpoint.recipe import (
    change,
    load_recipe,
    read_recipe_data,
    run_recipe,
    shipped_recipes,
    variants_of,
)
from counterpoint.recipe.recipe import declared_in
from counterpoint.transform import Flow, FlowTraining, Whitening

NAMES = [
    name
    for recipe, path in shipped_recipes().items()
    for name in (recipe, *(f"{recipe}:{variant}" for variant in variants_of(path)))
]
"""As on the command line."""
TURNED = 380  # directions that flows are fed of MiniLM's


@pytest.fixture(scope="session")
def backbones(tmp_path_factory):
    """By number of components: deep enough for every choice of layers, with a head that predicts words.

    A light query encoder is another model than the document encoder, or there would be nothing to align.
    """
    from transformers import BertConfig, BertForMaskedLM

    folders = {}
    for name, dim, layers in ((384, 384, 6), (768, 768, 12), ("light", 768, 2)):
        folders[name] = tmp_path_factory.mktemp(f"bert-{name}")
        config = BertConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=dim,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=512,
        )
        BertForMaskedLM(config).save_pretrained(folders[name])
        tiny_tokenizer(512).save_pretrained(folders[name])
    return folders


@pytest.fixture(scope="session")
def scored(tmp_path_factory):
    """Lists of a query, a positive and nine others, each with a teacher's score; and the collection."""
    folder = write_collection(tmp_path_factory.mktemp("every") / "collection")
    rng = np.random.default_rng(0)
    path = folder.parent / "scored.jsonl"
    rows = [
        [f"q{at}", *([f"d{(at + step) % 40}", float(rng.normal() + 9 * (step == 0))] for step in range(10))]
        for at in range(16)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, folder


def small(recipe, backbones):
    """The same recipe with tiny backbones, two queries a step and two steps a stage."""
    settings = []
    for path, part in declared_in(recipe):
        if isinstance(part, Transformer):
            light = "light" if part.source.startswith("google/bert_uncased_L-") else 768
            folder = backbones[384 if part.source == "minilm" else light]
            settings.append(f"{path}.source={str(folder)!r}")
        elif isinstance(part, Flow):
            settings.append(f"{path}.fitting={FlowTraining(steps=2, batch=8).to_dict()}")
            settings += [f"{path}.dim=16"] if part.dim == TURNED else []
        elif isinstance(part, Whitening) and part.rank == TURNED:  # few texts vary in few directions
            settings.append(f"{path}.rank=16")
        elif isinstance(part, Router) and part.start == "new":
            settings.append(f"{path}.bias=0.0")  # random logits lie about 0: at −5, no key would ever be open
        elif isinstance(part, Train):
            settings += [f"{path}.{s}" for s in ("steps=2", "batch=2", "accumulate=1", "warmup=0")]
            settings.append(f"{path}.evaluate_every=1")
            if part.cache is not None:
                settings += [f"{path}.cache.size=16", f"{path}.cache.groups=4"]
        elif isinstance(part, Fit):
            settings.append(f"{path}.documents=20")
    return change(recipe, [*settings, "data.depth=4"])


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.filterwarnings("ignore:(Whitening|Nice|Glow)")  # twenty documents, for hundreds of directions
@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_trains_to_its_end(name, backbones, scored, tmp_path):
    recipe = small(load_recipe(name), backbones)
    path, documents = scored
    folder = run_recipe(recipe, read_recipe_data(recipe, path, documents=documents), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for stage in [stage.name for stage in recipe.stages if isinstance(stage, Train)]:
        found = [line for line in lines if line["stage"] == stage and "loss" in line]
        assert found and found[-1]["step"] == 2 and np.isfinite(found[-1]["loss"])
    if isinstance(recipe.model, InteractiveEncoder):
        return
    model = load_model(folder)
    made = model.encode_document([f"{WORDS[0]} {WORDS[1]}"])
    assert made.keys() == model.sets.keys()
    assert all(len(rows.values) and np.isfinite(rows.values).all() for rows in made.values())

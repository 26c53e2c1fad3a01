"""What mteb records of a model, and what is refused."""

import subprocess
import sys
from pathlib import Path

import mteb
import pytest
from tests.integrations.tasks import (
    CORPUS,
    QRELS,
    QUERIES,
    TEXTS,
    encoded,
    reported,
    retrieval_task,
    searched,
)

from counterpoint.encode import DualEncoder, Encoder, TokenVectors, Transformer
from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.integrations import MtebEncoder, MtebSearch
from counterpoint.model import Model
from counterpoint.search import WORKFLOWS


def test_the_model_is_described_truthfully(model, tiny_bert_folder):
    from transformers import AutoModel

    meta = MtebEncoder(model, "unit", name="us/tiny").mteb_model_meta
    counted = sum(
        p.numel()
        for n, p in AutoModel.from_pretrained(tiny_bert_folder).named_parameters()
        if "pooler" not in n
    )
    assert (meta.name, meta.revision, meta.n_parameters) == ("us/tiny", model.fingerprint(), counted)
    assert (meta.embed_dim, meta.max_tokens, meta.use_instructions) == (16, 20, True)
    assert meta.memory_usage_mb == counted * 4 / 2**20
    assert (meta.modalities, meta.model_type, meta.training_datasets) == (["text"], ["dense"], None)
    plain = MtebSearch(tiny_bert_folder, "dense").mteb_model_meta
    assert plain.name == f"counterpoint/{tiny_bert_folder.name}"
    assert (plain.max_tokens, plain.use_instructions, plain.similarity_fn_name.value) == (64, False, "custom")
    types = {workflow: MtebSearch(model, workflow).mteb_model_meta.model_type for workflow in WORKFLOWS}
    assert types["lexical"] == ["sparse"] and types["words"] == ["late-interaction"]
    assert type(meta).model_validate(meta.model_dump()) == meta  # every field has a value that mteb allows


def test_results_of_different_settings_are_kept_apart(model, tmp_path):
    cache = mteb.ResultCache(tmp_path / "cache")
    task = retrieval_task(CORPUS, QUERIES, QRELS)
    heavier = Model(model.encoder, search={"weights": {"lexical": 9.0, "mean": 1.0}}, codec="float32").setup()
    assert heavier.fingerprint() == model.fingerprint()
    kinds = [MtebSearch(model), MtebSearch(model, "words"), MtebSearch(heavier), MtebEncoder(model, "unit")]
    kinds += [MtebEncoder(model, "mean")]
    values = [reported(kind, task, cache=cache) for kind in kinds]
    assert len(list(Path(cache.cache_path).rglob("Tiny.json"))) == len(kinds)
    assert values == [reported(kind, task) for kind in kinds]


def test_what_is_wrong_is_named(model, tiny_bert_folder):
    tokens = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), {"tokens": TokenVectors()})))
    for wrong, message in (
        (lambda: MtebSearch(model, "sparse"), "unknown workflow 'sparse'; choose one of hybrid"),
        (lambda: MtebSearch(model, name="tiny"), "names such as 'owner/name', found 'tiny'"),
        (lambda: MtebEncoder(model), "on=None, but the pooled sets of this model are mean, unit"),
        (lambda: MtebEncoder(model, "words"), "on='words', but the pooled sets of this model are mean, unit"),
        (lambda: MtebEncoder(tokens), r"are none \(of tokens\)"),
        (
            lambda: searched(MtebSearch(model), precision="int8"),
            "precision would have no effect",
        ),
        (
            lambda: encoded(MtebEncoder(model, "mean"), TEXTS, precision="int8"),
            "precision would have no effect",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            wrong()


@pytest.mark.parametrize("category, side", [("it2t", "query"), ("t2it", "document")])
def test_other_modalities_are_refused(model, category, side):
    task = retrieval_task(CORPUS, QUERIES, QRELS, category=category, modalities=["text", "image"])
    for ours in (MtebSearch(model), MtebEncoder(model, "mean")):
        with pytest.raises(ConfigError, match=f"Tiny: a {side} has image, and this model reads text only"):
            reported(ours, task)


def test_without_mteb_the_package_loads_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    for build in (MtebSearch, MtebEncoder):
        with pytest.raises(MissingExtraError, match=r"pip install .*\[mteb\]'"):
            build("no such model")
    code = "import sys; sys.modules['mteb'] = None; import counterpoint.integrations"
    subprocess.run([sys.executable, "-c", code], check=True)

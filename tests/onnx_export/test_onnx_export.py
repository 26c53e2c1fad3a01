"""Every model whose queries can be exported encodes them as torch does; of every other the reason is told."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS, WORDS, save_tiny_bert

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    Linear,
    Mean,
    Router,
    SparseTerms,
    Stack,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
    Unit,
    WholeWords,
)
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.onnx_encoder import open_export
from counterpoint.onnx_export import export_queries, write
from counterpoint.onnx_export.parity import BOUND, difference
from counterpoint.presets import PRESETS
from counterpoint.transform import Nice, Normalise, Whitening

MORE = [*TEXTS, "checkIfEmpty is_empty date.today", " ".join(WORDS) * 9, "\ud83d", "DOGS Dogs dogs"]


def whitening(dim=16, **options):
    rows = torch.randn(400, dim, generator=torch.Generator().manual_seed(0))
    return Whitening(dim, **options).fit([rows])


def of(folder, heads, **options):
    backbone = Transformer(str(folder))
    return DualEncoder(Encoder(backbone, heads, **options))


MODELS = {
    "pooled": lambda f: Model(
        of(f, {"mean": Mean(normalise=True), "cls": Cls(Linear(5, activation="tanh"))})
    ),
    "words": lambda f: Model(of(f, {"words": WholeWords(projection=Linear(4))}, identifiers=True)),
    "all words": lambda f: Model(
        of(f, {"words": WholeWords("lower", drop_punctuation=True, normalise=True)})
    ),
    "tokens": lambda f: Model(
        of(
            f,
            {"tokens": TokenVectors(skip=["?", ","], skip_sides=["query", "document"], normalise=True)},
            query=TextInput(32, marker="[unused0]", expand_to=32),
            document=TextInput(40, marker="[unused1]"),
        )
    ),
    "attended masks": lambda f: Model(
        of(f, {"tokens": TokenVectors()}, query=TextInput(12, prompt="query ", expand_to=12, attend=True))
    ),
    "layers": lambda f: Model(
        of(
            f,
            {
                "a": Mean(Stack([Linear(8, activation="gelu"), Unit(), Linear(8, residual=True)])),
                "b": Mean(Linear(8, bias=False, activation="relu", residual=True)),
                "c": Mean(Linear(3, activation="sigmoid"), tokenwise=[Normalise()]),
            },
        )
    ),
    "maps": lambda f: Model(
        of(f, {"mean": Mean(), "words": WholeWords()}),
        {"mean": [Normalise()], "words": [whitening(rank=7, normalise=True), Normalise()]},
    ),
    "token by token": lambda f: Model(of(f, {"mean": Mean(tokenwise=[whitening()], normalise=True)})),
    "shared": lambda f: Model(
        DualEncoder(
            Encoder(Transformer(str(f)), {"words": WholeWords(projection=Linear(4))}),
            shared={"words": Linear(1)},
        )
    ),
    "two encoders": lambda f: Model(
        DualEncoder(
            Encoder(Transformer(str(f), layers=2), {"mean": Mean()}, query=TextInput(9)),
            Encoder(Transformer(str(f)), {"mean": Mean()}, document=TextInput(20)),
        )
    ),
    "own backbones": lambda f: Model(
        of(
            f,
            {"mean": Mean(), "words": WholeWords()},
            own={"words": Transformer(str(f), layers=1)},
        )
    ),
    "static alone": lambda f: Model(of(f, {"static": Static(projection=Linear(6), normalise=True)})),
    "static and contextual": lambda f: Model(
        of(f, {"static": Static(normalise=True), "tokens": TokenVectors(projection=Linear(6))})
    ),
    "no layers": lambda f: Model(DualEncoder(Encoder(Transformer(str(f), layers=0), {"mean": Mean()}))),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


def exported(model, folder):
    folder.mkdir()
    told = export_queries(model, folder)
    assert "why" not in told, told
    assert told["texts"] > 30 and 0 <= told["difference"] <= BOUND
    return open_export(folder, {}, lambda: Path(model.loaded_from), lambda: model)


@pytest.mark.parametrize("kind", MODELS)
def test_queries_are_encoded_as_by_torch(kind, folder, tmp_path):
    torch.manual_seed(3)
    model = MODELS[kind](folder).setup().eval()
    found = exported(model, tmp_path / "e")
    assert difference(found.encode_query(MORE), model.encode_query(MORE, FP32)) < 1e-5
    fast = open_export(tmp_path / "e", {}, lambda: Path(model.loaded_from), lambda: model, int8=True)
    assert difference(fast.encode_query(MORE), found.encode_query(MORE)) < 0.1
    assert found.sets == model.sets and found.fingerprint() == model.fingerprint()
    assert len(found.encode_query([])[next(iter(model.sets))]) == 0
    for name, layout in model.sets.items():
        for side in ("query", "document"):
            assert found.spans(MORE, name, side) == model.spans(MORE, name, side)
            if layout.ids:
                ids = zip(*(one.row_ids(MORE, name, side) for one in (found, model)), strict=True)
                assert all(np.array_equal(*pair) for pair in ids)
        if layout.static:
            np.testing.assert_allclose(found.table(name), model.table(name), atol=1e-6)
            np.testing.assert_allclose(fast.table(name), model.table(name), atol=0.02)


@pytest.mark.minilm
@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_exported_without_their_weights(preset, tmp_path):
    found = exported(load_model(preset), tmp_path / "e")
    assert sum(path.stat().st_size for path in (tmp_path / "e").iterdir()) < 100_000
    assert found.description.difference < 1e-5


def test_a_saved_model_s_files_are_referred_to(folder, tmp_path):
    MODELS["maps"](folder).setup().save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    exported(model, tmp_path / "e")
    assert {path.name for path in (tmp_path / "e").iterdir()} == {"queries.json", "queries.onnx"}


def test_a_model_without_files_has_its_weights_written(folder, tmp_path):
    exported(MODELS["pooled"](folder).setup(), tmp_path / "e")
    names = {path.name for path in (tmp_path / "e").iterdir()}
    assert names == {"queries.json", "queries.onnx", "queries.safetensors", "tokenizer.json"}


def why(model, folder):
    folder.mkdir()
    told = export_queries(model.setup(), folder)
    assert list(folder.iterdir()) == []
    return told["why"]


def test_what_has_no_graph_is_named(folder, tmp_path):
    router = Router(start="new", in_dim=16, out_dim=16)
    assert "SparseTerms" in why(Model(of(folder, {"terms": SparseTerms(router)})), tmp_path / "terms")
    flow = Model(of(folder, {"mean": Mean()}), {"mean": [Nice(16)]})
    assert "Nice" in why(flow, tmp_path / "flow")
    apart = DualEncoder(
        Encoder(Transformer(str(folder)), {"l": Static()}), Encoder(Transformer(str(folder)), {"l": Static()})
    )
    assert "static" in why(Model(apart), tmp_path / "apart")
    double = MODELS["pooled"](folder).setup().double()
    assert "float64" in why(double, tmp_path / "double")


def test_another_architecture_is_named(tmp_path):
    from tests.encode.tiny import tiny_tokenizer
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(vocab_size=200, dim=16, n_layers=1, n_heads=2, hidden_dim=8)
    DistilBertModel(config).save_pretrained(tmp_path / "other")
    tiny_tokenizer().save_pretrained(tmp_path / "other")
    assert "DistilBertModel" in why(Model(of(tmp_path / "other", {"mean": Mean()})), tmp_path / "e")


def test_an_export_that_differs_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "BOUND", -1.0)
    assert "differ by" in why(MODELS["pooled"](folder), tmp_path / "e")

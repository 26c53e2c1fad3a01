"""Checkpoints that are refused, each with an error that names the fault."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from counterpoint.encode import load_encoder
from counterpoint.errors import ArtifactError

formats = pytest.importorskip("tests.encode.formats")


def refuse(folder, message):
    with pytest.raises(ArtifactError, match=message):
        load_encoder(folder)


def test_no_model(tmp_path):
    refuse(tmp_path, "no model here")


def test_missing_projections(tmp_path):
    formats.save_stanford(tmp_path / "s")
    tensors = load_file(tmp_path / "s" / "model.safetensors")
    weight = tensors.pop("linear.weight")
    save_file(tensors, tmp_path / "s" / "model.safetensors")
    refuse(tmp_path / "s", "projection 'linear.weight' is missing")
    save_file({**tensors, "linear.weight": weight[:, :4].contiguous()}, tmp_path / "s" / "model.safetensors")
    refuse(tmp_path / "s", "maps 4 components")
    formats.save_pylate(tmp_path / "p")
    formats.set_modules(tmp_path / "p", ("", "sentence_transformers.models.Transformer"))
    refuse(tmp_path / "p", "without its projection")


def test_unused_weights(tmp_path):
    formats.save_stanford(tmp_path / "s")
    (tmp_path / "s" / "artifact.metadata").unlink()
    formats.edit(tmp_path / "s" / "config.json", architectures=["BertModel"])
    refuse(tmp_path / "s", "linear.weight' is not used")  # ColBERT is not to be read as a pooled model
    formats.save_pylate(tmp_path / "p")
    path = tmp_path / "p" / "1_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(8, 16), "linear.bias": torch.zeros(8)}, path)
    refuse(tmp_path / "p", "linear_.bias' is not used")


def test_dimensions_that_disagree(tmp_path):
    formats.save_stanford(tmp_path / "s", dim=4)
    refuse(tmp_path / "s", "says dim 4")
    formats.save_pylate(tmp_path / "p")
    formats.edit(tmp_path / "p" / "1_Dense" / "config.json", in_features=12)
    refuse(tmp_path / "p", "in_features is 12")
    formats.edit(tmp_path / "p" / "1_Dense" / "config.json", in_features=16, out_features=9)
    refuse(tmp_path / "p", "has shape")
    _, folder = formats.save_dense(tmp_path / "d")
    formats.edit(folder / "1_Pooling" / "config.json", embedding_dimension=99)
    refuse(folder, "pools 99 components")


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("evil.Module", "1_Dense", "unknown class 'evil.Module'"),
        ("sentence_transformers.models.LSTM", "1_Dense", "LSTM"),
        ("pylate.models.Dense.Dense", "../1_Dense", "outside the checkpoint"),
        ("pylate.models.Dense.Dense", "/1_Dense", "outside the checkpoint"),
        ("pylate.models.Dense.Dense", "2_Dense", "missing"),
    ],
)
def test_modules_not_to_be_trusted(tmp_path, name, path, message):
    formats.save_pylate(tmp_path / "m")
    formats.set_modules(tmp_path / "m", ("", "sentence_transformers.models.Transformer"), (path, name))
    refuse(tmp_path / "m", message)


def test_a_link_out_of_the_folder(tmp_path):
    formats.save_pylate(tmp_path / "m")
    (tmp_path / "m" / "1_Dense").rename(tmp_path / "elsewhere")
    (tmp_path / "m" / "1_Dense").symlink_to(tmp_path / "elsewhere")
    refuse(tmp_path / "m", "outside the checkpoint")


def test_settings_that_cannot_be_carried_out(tmp_path):
    formats.save_pylate(tmp_path / "m", query_prefix="[Q] ")
    refuse(tmp_path / "m", r"marker '\[Q\] ' is not one entry")
    formats.save_pylate(tmp_path / "n")
    formats.edit(tmp_path / "n" / "1_Dense" / "config.json", activation_function="os.system")
    refuse(tmp_path / "n", "os.system")
    _, folder = formats.save_dense(tmp_path / "d", pooling="max")
    refuse(folder, "pools by 'max'")


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_broken_modules_json(tmp_path, text):
    formats.save_pylate(tmp_path / "m")
    (tmp_path / "m" / "modules.json").write_text(text)
    refuse(tmp_path / "m", "modules.json")

"""What `diagnose` hands to the picture of scores, of one model and of several."""

import json

import numpy as np
import pytest
import torch
from tests.cli.commands import fails

from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.plots.scores import scores_plot


@pytest.fixture
def model_folder(tmp_path, tiny_bert_folder):
    """One pooled set and one of tokens."""
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).save(tmp_path / "hil")
    return tmp_path / "hil"


@pytest.fixture
def other_folder(tmp_path, tiny_bert_folder):
    """A model of random weights whose one set is of tokens."""
    torch.manual_seed(5)
    other = tmp_path / "runs" / "other"
    Model(
        DualEncoder(Encoder(Transformer(str(tiny_bert_folder), random=True), {"tokens": TokenVectors()}))
    ).save(other)
    return other


@pytest.fixture
def drawn(monkeypatch):
    """What is handed to the picture of scores: curves of pairs and of others, by label."""
    curves = []

    def recorded(together, other, title):
        curves.append((together, other))
        return scores_plot(together, other, title)

    monkeypatch.setattr("counterpoint.plots.scores.scores_plot", recorded)
    return curves


def test_scores_of_another_model_join_the_picture(
    collection, model_folder, other_folder, drawn, call, tmp_path
):
    plots = ("--plots", tmp_path / "p")
    code, out, err = call("diagnose", model_folder, collection, "--against", other_folder, *plots, "--json")
    assert code == 0, err
    assert "layers" not in json.loads(out) and (tmp_path / "p" / "scores.png").exists()
    assert set(json.loads(out)["sets"]) == {"mean", "tokens"}  # the page is about one model
    assert call("diagnose", model_folder, collection, *plots)[0] == 0
    assert call("diagnose", other_folder, collection, *plots)[0] == 0
    both, ours, theirs = drawn
    names = {f"hil {name}" for name in ("mean", "tokens")} | {"other tokens"}
    assert set(ours[0]) == {"mean", "tokens"} and set(theirs[0]) == {"tokens"}
    for kind in range(2):  # pairs, and others: those that each model has alone, of the same texts
        assert set(both[kind]) == names
        alone = {f"hil {name}": values for name, values in ours[kind].items()}
        for name, values in {**alone, "other tokens": theirs[kind]["tokens"]}.items():
            np.testing.assert_allclose(both[kind][name], values, atol=1e-5)
    assert len(both[0]["other tokens"]) == len(both[0]["hil tokens"])


def test_scores_of_several_models_of_one_set(
    collection, model_folder, other_folder, tiny_bert_folder, drawn, call, tmp_path
):
    """HIL's figure 6 has three; --on is about those that have the set, and equal names are told apart."""
    again = tmp_path / "more" / "other"
    again.parent.mkdir()
    again.symlink_to(other_folder)
    others = ("--against", again, "--against", tiny_bert_folder, "--on", "tokens")
    code, _, err = call("diagnose", other_folder, collection, *others, "--plots", tmp_path / "p", "--layers")
    assert code == 0, err
    (own,) = load_model(tiny_bert_folder).sets
    names = [f"{other_folder} tokens", f"{again} tokens", f"{tiny_bert_folder} {own}"]
    assert list(drawn[0][0]) == list(drawn[0][1]) == names
    assert fails(
        call("diagnose", model_folder, collection, "--against", other_folder), "--against", "--plots"
    )
    several = ("--against", other_folder, "--against", again, "--layers")
    assert fails(call("diagnose", model_folder, collection, *several), "--plots")

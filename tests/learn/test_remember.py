"""Heads after a frozen backbone are trained faster when its hidden states are remembered, and alike."""

from dataclasses import replace

import pytest
from tests.learn.small import development_set
from tests.learn.test_trainer import StopAt, Stopped, job, log, losses, same, stage, weights

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Transformer
from counterpoint.errors import ConfigError
from counterpoint.learn import train
from counterpoint.model import Model


def heads_only(tiny, **changes):
    """A stage that trains a projection after a frozen backbone, and the model it needs."""
    backbone, head = Transformer(str(tiny)), Mean(projection=Linear(8))
    settings = {"learn": ("query.heads.*",), "evaluate_every": 4, "checkpoint_every": 3, **changes}
    return {"stages": (stage(**settings),), "model": Model(DualEncoder(Encoder(backbone, {"mean": head})))}


def heads_job(tiny, folder, **changes):
    found = heads_only(tiny, **changes)
    more = {"model": found["model"], "development": development_set(), "measures": ("RR@10",)}
    return job(tiny, folder, *found["stages"], **more)


def test_a_frozen_backbone_has_no_dropout(tiny_bert_folder, tmp_path):
    """So what its texts become does not change, and may be remembered."""
    run = heads_job(tiny_bert_folder, tmp_path / "run", steps=2)
    seen = []
    run.model.setup().encoder.query.backbone.register_forward_hook(
        lambda part, *_: seen.append(part.training)
    )
    train(run)
    assert seen and not any(seen)


def test_what_is_remembered_changes_nothing_but_the_time(tiny_bert_folder, tmp_path):
    """The losses are those without a memory, up to half precision; nothing is left behind."""
    for name, remember in (("without", 0.0), ("with", 1.0)):
        run = heads_job(tiny_bert_folder, tmp_path / name, remember=remember)
        train(run)
        assert run.model.encoder.query.backbone.memory is None
    without, remembered = losses(tmp_path / "without"), losses(tmp_path / "with")
    for (*_, one), (*_, other) in zip(without, remembered, strict=True):
        assert other == pytest.approx(one, abs=2e-3)
    assert remembered != without, "half precision shows, or nothing was remembered"


def test_a_run_that_remembers_goes_on_to_the_same_losses(tiny_bert_folder, tmp_path):
    train(heads_job(tiny_bert_folder, tmp_path / "whole", remember=1.0))
    with pytest.raises(Stopped):
        train(heads_job(tiny_bert_folder, tmp_path / "cut", remember=1.0), reporter=StopAt(7))
    train(heads_job(tiny_bert_folder, tmp_path / "cut", remember=1.0), resume=True)
    assert log(tmp_path / "cut") == log(tmp_path / "whole")
    assert same(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_backbone_that_learns_is_not_remembered(tiny_bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="remember=1 keeps the output of frozen backbones, and every"):
        train(heads_job(tiny_bert_folder, tmp_path / "run", learn=("*",), remember=1.0))


def test_another_run_finds_what_one_remembered(tiny_bert_folder, tmp_path, monkeypatch):
    """It computes nothing, evaluations included, and its losses are the same to the bit."""
    memory = tmp_path / "memory"
    train(replace(heads_job(tiny_bert_folder, tmp_path / "one", remember=1.0), memory=memory))
    (folder,) = memory.iterdir()
    monkeypatch.setattr(Transformer, "_states", lambda *_: pytest.fail("a text passed the backbone again"))
    second = replace(heads_job(tiny_bert_folder, tmp_path / "two", remember=1.0), memory=memory)
    train(second)
    assert losses(tmp_path / "two") == losses(tmp_path / "one")
    assert folder.name == second.model.encoder.query.backbone.fingerprint()
    assert len(list(folder.iterdir())) == 1

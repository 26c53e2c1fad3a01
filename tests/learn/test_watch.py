"""The watch sees each kind of collapse, says so once, and leaves healthy training alone."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from counterpoint.config import Setting
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn import Step, Targets, Watch, WatchSettings
from counterpoint.measure.alignment import kl_divergence, mean_cosine, participation_ratio, spectrum, spread
from counterpoint.vectors import Vectors

DIM = 16


def vectors(rows):
    values = torch.as_tensor(rows, dtype=torch.float32)[:, None]
    return Vectors(values, torch.ones(values.shape[:2], dtype=torch.bool))


def step(q, d, negatives=None):
    """A step on the set `cls`; where `negatives` is given, of a cache of so many candidates."""
    count, documents = len(q), len(d)
    targets = Targets(
        own=torch.arange(count)[:, None],
        allowed=torch.ones(count, documents, dtype=torch.bool),
        cached=None if negatives is None else torch.zeros(count, negatives),
    )
    return Step({"cls": vectors(q)}, {"cls": vectors(d)}, torch.zeros(count, documents), targets)


def healthy(seed, rows=32):
    return np.random.default_rng(seed).normal(size=(2, rows, DIM))


def warnings_of(watch, steps, loss=None):
    return [warning for at, one in steps for warning in watch.see(one, at, loss).warnings]


def test_numbers_are_those_of_the_latest_vectors():
    watch = Watch(WatchSettings(every=5, rows=48))
    seen = [healthy(at) for at in range(6)]
    looked = [watch.see(step(*rows), at) for at, rows in enumerate(seen)]
    assert [bool(found.numbers) for found in looked] == [True, False, False, False, False, True]
    latest = {
        side: np.concatenate([rows[number] for rows in seen])[-48:].astype(np.float32)
        for number, side in enumerate(("query", "document"))
    }
    numbers = looked[-1].numbers
    for side, rows in latest.items():
        assert numbers[f"watch.cls.{side}.cosine"] == pytest.approx(mean_cosine(rows))
        assert numbers[f"watch.cls.{side}.spread"] == pytest.approx(spread(rows))
        assert numbers[f"watch.cls.{side}.rank"] == pytest.approx(participation_ratio(spectrum(rows)))
    assert numbers["watch.cls.kl"] == pytest.approx(kl_divergence(latest["document"], latest["query"]))
    assert len(numbers) == 9 and json.loads(json.dumps(numbers)) == numbers


def test_only_real_rows_count_and_no_gradient_is_kept():
    values = torch.randn(8, 6, DIM, requires_grad=True)
    mask = torch.rand(8, 6) < 0.7
    many = Vectors(values.masked_fill(~mask[..., None], math.nan), mask)
    watch = Watch(WatchSettings(every=1, rows=1000))
    one = step(*healthy(0, rows=8))
    numbers = watch.see(Step({"words": many}, {"words": many}, one.scores, one.targets), 0).numbers
    assert numbers["watch.words.query.cosine"] == pytest.approx(mean_cosine(values[mask].detach().numpy()))
    tensors, _ = watch.state()
    assert not any(rows.requires_grad for rows in tensors.values())
    few = Watch(WatchSettings(every=1, rows=10))
    few.see(Step({"words": many}, {"words": many}, one.scores, one.targets), 0)
    kept = few.state()[0]["words.query"]
    assert len(kept) == 10 and kept.untyped_storage().nbytes() == 10 * DIM * 4  # and not a view of the batch
    assert torch.equal(kept[[0, -1]], values[mask][[0, -1]])  # spread over the whole batch


def test_a_healthy_training_is_left_alone():
    assert warnings_of(Watch(), [(at, step(*healthy(at))) for at in range(100)], loss=1.0) == []


def test_one_direction_is_said_once_until_it_has_recovered():
    watch = Watch(WatchSettings(every=1, rows=32, calm=2))
    good = [step(*healthy(at)) for at in range(3)]
    bad = [step(healthy(at)[0], healthy(at)[1] + 20) for at in range(3)]
    assert warnings_of(watch, enumerate(good)) == []
    (warning,) = warnings_of(watch, enumerate(bad))
    cosine = mean_cosine((healthy(0)[1] + 20).astype(np.float32))
    lowest = min(mean_cosine(healthy(at)[1].astype(np.float32)) for at in range(3))
    assert warning.startswith(
        f"documents (cls) point in one direction: mean cosine {cosine:.2f}, was {lowest:.2f}."
    )
    assert "align the query side first" in warning and "learning rate" in warning
    assert warnings_of(watch, enumerate(good[:1])) == []
    assert warnings_of(watch, enumerate(bad)) == []  # not yet recovered
    assert warnings_of(watch, enumerate(good)) == []
    assert len(warnings_of(watch, enumerate(bad))) == 1


def test_few_dimensions_are_seen_where_the_cosine_is_blind():
    watch = Watch(WatchSettings(every=1, rows=64))
    flat = healthy(1, rows=64) * (np.arange(DIM) < 2)
    assert warnings_of(watch, [(0, step(*healthy(0, rows=64)))]) == []
    found = warnings_of(watch, [(1, step(flat[0], healthy(2, rows=64)[1]))])
    rank = participation_ratio(spectrum(flat[0]))
    assert len(found) == 1
    assert found[0].startswith(f"queries (cls) use few dimensions: effective rank {rank:.1f} of 16, was")


@pytest.mark.parametrize(("negatives", "level"), [(64, math.log(65)), (None, math.log(32))])
def test_a_loss_that_stays_at_equal_scores(negatives, level):
    watch = Watch(WatchSettings(every=2, stuck=3))
    steps = [step(*healthy(at), negatives) for at in range(12)]
    assert warnings_of(watch, list(enumerate(steps))[:4], loss=level) == []  # two looks
    found = warnings_of(watch, list(enumerate(steps))[4:], loss=level * 1.01)
    assert len(found) == 1 and f"near {level:.2f}" in found[0] and "no proof of a collapse" in found[0]
    assert warnings_of(Watch(WatchSettings(every=2, stuck=3)), enumerate(steps), loss=level * 1.05) == []
    assert warnings_of(Watch(WatchSettings(every=2, stuck=3)), enumerate(steps), loss=None) == []


def test_daft_s_figure_in_the_numbers(golden):
    """Equation 7: 64 negatives give 4.17."""
    watch = Watch(WatchSettings(every=1, stuck=1))
    loss = golden("contrastive_collapsed")["expected"]["loss"]
    found = warnings_of(watch, [(0, step(*healthy(0), negatives=64))], loss=loss)
    assert len(found) == 1 and "near 4.17, the loss of equal scores" in found[0]


def test_a_single_point_and_single_rows_are_described_not_refused():
    watch = Watch(WatchSettings(every=1))
    assert watch.see(step(np.ones((1, DIM)), np.ones((1, DIM))), 0).numbers == {}
    numbers = watch.see(step(np.ones((4, DIM)), np.ones((4, DIM))), 1).numbers
    assert numbers["watch.cls.document.rank"] == 0 and "watch.cls.kl" not in numbers
    with pytest.raises(DataError, match="not finite"):
        watch.see(step(np.full((4, DIM), math.nan), np.ones((4, DIM))), 2)


def test_a_watch_that_is_taken_up_goes_on_as_it_would_have(tmp_path):
    settings = WatchSettings(every=3, rows=40, stuck=4)
    rows = [healthy(at) if at < 6 else healthy(at) + 20 for at in range(12)]
    steps = [step(*both, negatives=8) for both in rows]
    whole, first, second = (Watch(settings) for _ in range(3))
    expected = [whole.see(one, at, math.log(9)) for at, one in enumerate(steps)]
    found = [first.see(one, at, math.log(9)) for at, one in enumerate(steps[:8])]
    tensors, numbers = first.state()
    save_file(tensors, tmp_path / "watch.safetensors")
    second.restore(load_file(tmp_path / "watch.safetensors"), json.loads(json.dumps(numbers)))
    found += [second.see(one, at, math.log(9)) for at, one in enumerate(steps) if at >= 8]
    assert found == expected
    said = [warning for looked in expected for warning in looked.warnings]
    assert sum("one direction" in warning for warning in said) == 2  # once for each side, at the 10th step
    assert sum("the loss of equal scores" in warning for warning in said) == 1
    assert expected[9].warnings  # by what the first half remembers


def test_settings_are_plain_data_and_checked_at_once():
    assert Setting.from_dict(WatchSettings(every=7).to_dict()) == WatchSettings(every=7)
    with pytest.raises(ConfigError) as caught:
        WatchSettings(every=0, rows=1, room=2, rank=-1, chance=3, stuck=0, calm=0)
    assert len(caught.value.faults) == 7

"""The negative cache draws what a plain Gumbel-max would, keeps to its size, and can be taken up again."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy.stats import chisquare

from counterpoint.config import Setting
from counterpoint.errors import ArtifactError, ConfigError, DataError, ShapeError
from counterpoint.index import VectorSet
from counterpoint.learn import Example, NegativeCache, TrainingSet, join_drawn, make_batch
from counterpoint.learn.cache import RunningCache, _Stream
from counterpoint.score import Dot, MaxSim
from counterpoint.vectors import Vectors

DIM = 3
SETS = {"cls": VectorSet(DIM, True, False)}
CORPUS = [f"d{at}" for at in range(40)]


def vector_of(document):
    return torch.tensor(np.random.default_rng(int(document[1:])).normal(size=DIM), dtype=torch.float32)


def encode(ids):
    return torch.stack([vector_of(document) for document in ids])


def filled(documents=CORPUS, seed=0, **settings):
    cache = RunningCache(NegativeCache(**{"size": 16, "groups": 4, **settings}), SETS, documents, seed)
    cache.fill(encode)
    return cache


def queries(count, seed=0):
    values = torch.randn(count, 1, DIM, generator=torch.Generator().manual_seed(seed))
    return {"cls": Vectors(values, torch.ones(count, 1, dtype=torch.bool))}


def scoring(q):
    return lambda documents: Dot("cls")(q, documents)


def held(cache):
    """Documents by slot."""
    return {slot: document for document, slot in cache.state()[1]["held"]}


def by_hand(cache, q, excluded, scale, noise):
    """Each group's best, then the largest of score plus noise: document by document. `noise` by group."""
    groups, width = noise.shape[1], cache.settings.size // noise.shape[1]
    drawn = []
    for row, ruled_out in enumerate(excluded):
        best = []
        for group in range(groups):
            found = [
                (float(q["cls"].values[row, 0] @ vector_of(document)), document)
                for slot, document in held(cache).items()
                if slot // width == group and document not in ruled_out
            ]
            if found:
                value, document = max(found)
                best.append((scale * value + float(noise[row, group]), document))
        drawn.append(max(best)[1] if best else None)
    return drawn


# -- drawing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 4, 16])
@pytest.mark.parametrize("block", [1, 4, 1 << 16])
def test_draws_are_those_of_a_plain_gumbel_max_over_the_same_rows(groups, block, monkeypatch):
    monkeypatch.setattr("counterpoint.learn.cache.BLOCK", block)
    cache = filled(groups=groups, scale=2.0)
    q = queries(5)
    excluded = [set(), {"d1", "d2"}, set(list(held(cache).values())[:10]), set(CORPUS), {"unknown"}]
    noise = torch.zeros(5, groups, dtype=torch.float64)
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "exponential_", lambda self, generator: self.fill_(1.0))  # no noise
        plain = cache.draw(scoring(q), excluded, step=0)
    expected = by_hand(cache, q, excluded, 2.0, noise)
    assert plain.documents == [[] if document is None else [document] for document in expected]
    noise = torch.empty(noise.shape, dtype=torch.float64)
    noise = noise.exponential_(generator=torch.Generator().manual_seed(7))
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "exponential_", lambda self, generator: self.copy_(noise))
        drawn = cache.draw(scoring(q), excluded, step=0)
    expected = by_hand(cache, q, excluded, 2.0, -noise.log())
    assert drawn.documents == [[] if document is None else [document] for document in expected]


@pytest.mark.parametrize("groups", [4, 16])
def test_draws_follow_the_softmax_of_the_candidates_scores(groups):
    cache = filled(groups=groups, scale=1.5)
    q, times = queries(1), 4000
    q = {"cls": Vectors(q["cls"].values.expand(times, 1, DIM), q["cls"].mask.expand(times, 1))}
    drawn = cache.draw(scoring(q), [{"d3"}] * times, step=0)
    counts = Counter(document for (document,) in drawn.documents)
    width = 16 // groups
    best = {}
    for slot, document in held(cache).items():
        value = 1.5 * float(q["cls"].values[0, 0] @ vector_of(document))
        if document != "d3" and value > best.get(slot // width, (-math.inf, ""))[0]:
            best[slot // width] = (value, document)
    weights = {document: math.exp(value) for value, document in best.values()}
    assert set(counts) <= set(weights)
    expected = [times * weight / sum(weights.values()) for weight in weights.values()]
    assert chisquare([counts[document] for document in weights], expected).pvalue > 0.001


def test_scores_are_those_of_each_groups_best_before_scaling():
    cache = filled(scale=20.0)
    q = queries(2)
    scores = cache.draw(scoring(q), [set(), set(CORPUS)], step=0).scores
    rows = [[float(q["cls"].values[0, 0] @ vector_of(held(cache)[slot])) for slot in range(16)]]
    np.testing.assert_allclose(scores[0], np.array(rows).reshape(4, 4).max(1), rtol=1e-5)
    assert scores[1].tolist() == [-math.inf] * 4


def test_several_draws_are_different_and_the_step_decides_them():
    cache = filled(draws=3)
    q, nothing = queries(6), [set()] * 6
    once = cache.draw(scoring(q), nothing, step=5)
    assert all(len(set(documents)) == 3 for documents in once.documents)
    torch.manual_seed(99)
    assert cache.draw(scoring(q), nothing, step=5).documents == once.documents
    assert cache.draw(scoring(q), nothing, step=6).documents != once.documents
    assert filled(draws=3, seed=1).draw(scoring(q), nothing, step=5).documents != once.documents


def test_no_gradient_and_no_document_that_has_no_vector():
    cache = RunningCache(NegativeCache(size=8, groups=2), SETS, CORPUS[:4], 0)
    q = queries(3)
    q["cls"].values.requires_grad_()
    empty = cache.draw(scoring(q), [set()] * 3, step=0)
    assert empty.documents == [[], [], []] and not empty.scores.requires_grad
    cache.fill(lambda ids: encode(ids) * torch.tensor([[float(name != "d2")] for name in ids]))
    q = {"cls": Vectors(-100 * vector_of("d0").expand(50, 1, DIM), torch.ones(50, 1, dtype=torch.bool))}
    drawn = {name for step in range(20) for (name,) in cache.draw(scoring(q), [set()] * 50, step).documents}
    assert len(cache) == 4 and drawn and "d2" not in drawn  # although 0 would beat negative scores


# -- keeping it fresh --------------------------------------------------------------------------------------


def test_a_full_cache_holds_different_documents_and_the_memory_that_was_declared():
    cache = filled()
    where = cache.vectors.data_ptr()
    assert cache.vectors.nbytes == cache.settings.memory(DIM) == 16 * DIM * 4
    for step in range(30):
        cache.write_back(CORPUS[step : step + 5], encode(CORPUS[step : step + 5]))
        cache.refresh(encode)
        assert len(cache) == len(set(held(cache).values())) == 16
    assert cache.vectors.data_ptr() == where
    for slot, document in held(cache).items():
        assert torch.equal(cache.vectors[slot], vector_of(document))


def test_what_is_written_back_replaces_itself_or_the_oldest():
    cache = filled()
    order = [document for document, _ in cache.state()[1]["held"]]  # the oldest first
    new = next(document for document in CORPUS if document not in order)
    places = dict(cache.state()[1]["held"])
    cache.write_back([order[0], new], torch.tensor([[1.0, 0, 0], [0, 2.0, 0]]).requires_grad_())
    now = dict(cache.state()[1]["held"])
    assert now[order[0]] == places[order[0]] and now[new] == places[order[1]] and order[1] not in now
    assert list(now)[-2:] == [order[0], new]
    assert cache.vectors[now[order[0]]].tolist() == [1, 0, 0] and not cache.vectors.requires_grad
    assert cache.vectors[now[new]].tolist() == [0, 2, 0]


@pytest.mark.parametrize(("replace", "refresh", "count"), [(False, 0.25, 4), (True, 0.2, 4), (False, 0, 0)])
def test_refresh_renews_the_oldest(replace, refresh, count):
    cache = filled(refresh=refresh, replace=replace)
    order = [document for document, _ in cache.state()[1]["held"]]
    asked = []
    cache.refresh(lambda ids: asked.extend(ids) or 2 * encode(ids))
    now = dict(cache.state()[1]["held"])
    assert len(asked) == count and list(now) == order[count:] + asked
    assert (asked == order[:count]) != (replace and count > 0)
    assert not set(asked) & set(order) if replace else set(now) == set(order)
    for document in asked:
        assert torch.equal(cache.vectors[now[document]], 2 * vector_of(document))


def test_a_corpus_that_fits_is_encoded_again_where_there_is_nothing_new():
    cache = filled(CORPUS[:6], refresh=0.5, replace=True)
    assert len(cache) == 6
    asked = []
    cache.refresh(lambda ids: asked.extend(ids) or encode(ids))
    assert len(asked) == 3 and len(cache) == 6


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 4))
def test_the_stream_visits_every_document_before_any_for_the_second_time(corpus, count, turns):
    documents = CORPUS[:corpus]
    one = _Stream(documents, seed=3)
    for _ in range(turns):
        assert sorted(one.take(1, {})[0] for _ in documents) == sorted(documents)
    kept = documents[::3]
    for _ in range(turns):
        found = one.take(count, kept)
        assert len(found) == len(set(found)) == min(count, corpus - len(kept)) and not set(found) & set(kept)


# -- checkpoints -------------------------------------------------------------------------------------------


def run(cache, steps):
    """Steps as a trainer does them; what was drawn."""
    drawn = []
    for step in steps:
        q = queries(3, seed=step)
        found = cache.draw(scoring(q), [{"d1"}] * 3, step).documents
        ids = [*dict.fromkeys([document for (document,) in found]), f"d{step % 40}"]
        cache.write_back(ids, encode(ids) + step)
        cache.refresh(encode)
        drawn.append(found)
    return drawn


@pytest.mark.parametrize("replace", [False, True])
def test_a_run_that_is_taken_up_draws_what_it_would_have_drawn(tmp_path, replace):
    settings = {"refresh": 0.3, "replace": replace}
    whole = filled(**settings)
    expected = run(whole, range(12))
    first = filled(**settings)
    begun = run(first, range(5))
    tensors, numbers = first.state()
    save_file(tensors, tmp_path / "cache.safetensors")
    (tmp_path / "cache.json").write_text(json.dumps(numbers))
    second = RunningCache(NegativeCache(size=16, groups=4, **settings), SETS, CORPUS, 0)
    second.restore(
        load_file(tmp_path / "cache.safetensors"), json.loads((tmp_path / "cache.json").read_text())
    )
    assert begun + run(second, range(5, 12)) == expected
    assert torch.equal(second.vectors, whole.vectors)
    assert list(second.state()[1]["held"]) == list(whole.state()[1]["held"])


def test_another_caches_state_is_refused():
    tensors, numbers = filled().state()
    with pytest.raises(ArtifactError, match=r"shape \(16, 3\), this run's \(32, 3\)"):
        RunningCache(NegativeCache(size=32, groups=4), SETS, CORPUS, 0).restore(tensors, numbers)


# -- in a batch --------------------------------------------------------------------------------------------


def test_drawn_documents_join_the_batch_behind_the_positive():
    examples = (Example("q0", ("d0",), ("d5",), {"d0": 3.0, "d5": 1.0}), Example("q1", ("d1",)))
    relevant = {"q0": frozenset({"d0", "d7"}), "q1": frozenset({"d1"})}
    texts = {document: f"text of {document}" for document in CORPUS}
    data = TrainingSet({"q0": "a", "q1": "b"}, texts, examples, relevant)

    def given_negatives(at, rng):
        return examples[at].negatives

    batch = make_batch(data, [0, 1], [given_negatives], np.random.default_rng(0))
    assert batch.document_ids == ("d0", "d5", "d1")
    cache = filled()
    drawn = cache.draw(scoring(queries(2)), [{"d0", "d5", "d7"}, {"d1"}], step=0)
    drawn = type(drawn)([["d1"], ["d7"]], drawn.scores)  # another query's positive, another's relevant one
    joined = join_drawn(batch, drawn, data)
    assert joined.document_ids == ("d0", "d5", "d1", "d7") and joined.documents[3] == "text of d7"
    targets = joined.targets
    assert targets.own.tolist() == [[0, 2, 1], [2, 3, -1]]
    assert targets.allowed.tolist() == [[True, True, True, False], [True, True, True, True]]
    assert targets.teacher[0, [0, 2]].tolist() == [3, 1] and targets.teacher[0, 1].isnan()
    assert targets.cached is drawn.scores
    none = join_drawn(batch, type(drawn)([["d9"], []], drawn.scores), data)
    assert none.targets.own.tolist() == [[0, 3, 1], [2, -1, -1]]
    bare = join_drawn(batch, type(drawn)([[], []], drawn.scores), data)
    assert bare.targets.own.tolist() == batch.targets.own.tolist() and bare.document_ids == batch.document_ids


# -- settings and mistakes ---------------------------------------------------------------------------------


def test_settings_are_plain_data():
    settings = NegativeCache(size=128, groups=32, refresh=0.01, on="cls")
    assert Setting.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_settings_that_cannot_be_carried_out():
    with pytest.raises(ConfigError, match=r"size \(10\) must be a multiple of groups \(4\)"):
        NegativeCache(size=10, groups=4)
    with pytest.raises(ConfigError) as caught:
        NegativeCache(size=8, groups=2, draws=3, scale=0, refresh=2)
    assert len(caught.value.faults) == 3
    with pytest.raises(ConfigError, match="size must be at least 1, found 0"):
        NegativeCache(size=0)
    with pytest.raises(ConfigError, match="the sets cls, dense; on=None"):
        RunningCache(NegativeCache(), {**SETS, "dense": SETS["cls"]}, CORPUS, 0)
    with pytest.raises(ConfigError, match="'words' has several vectors"):
        RunningCache(NegativeCache(on="words"), {"words": VectorSet(3, False, True)}, CORPUS, 0)


def test_vectors_and_scores_that_do_not_fit():
    cache = filled()
    with pytest.raises(ShapeError, match="expected 3 components"):
        cache.write_back(["d0"], torch.ones(1, 2))
    with pytest.raises(DataError, match="not finite"):
        cache.write_back(["d0"], torch.full((1, 3), math.nan))
    with pytest.raises(ConfigError, match="below the 17 documents"):
        cache.write_back(CORPUS[:17], encode(CORPUS[:17]))
    with pytest.raises(ShapeError, match="2 queries and 16 documents"):
        cache.draw(scoring(queries(3)), [set(), set()], 0)
    with pytest.raises(DataError, match="not a number"):
        cache.draw(lambda documents: torch.full((1, 16), math.nan), [set()], 0)
    with pytest.raises(ConfigError, match="no vector set 'words' on the query side"):
        cache.draw(lambda documents: MaxSim("words")(queries(1), documents), [set()], 0)

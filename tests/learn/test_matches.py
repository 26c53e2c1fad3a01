"""Exact matches hidden in training: which, how often, from which query, and that runs repeat themselves."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encode.tiny import VOCABULARY, tiny_tokenizer
from tests.learn.small import development_set, judge, model, training_set
from tests.learn.test_remember import heads_job
from tests.learn.test_trainer import StopAt, Stopped, log, losses, same, weights
from tests.learn.training import training_sets

from counterpoint.encode import Encoder, Tokenizer
from counterpoint.encode.interactive import InteractiveEncoder
from counterpoint.errors import ConfigError
from counterpoint.learn import (
    Contrastive,
    FromData,
    Job,
    Loss,
    NegativeCache,
    NegativeLogLikelihood,
    Train,
    make_batch,
    own_pairs,
    train,
)
from counterpoint.learn.batches import one_owner_each
from counterpoint.learn.matches import MatchMasks, exact_matches
from counterpoint.score import Dot

MASK = VOCABULARY.index("[MASK]")
SPECIAL = {VOCABULARY.index(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}


def test_matches_are_the_golden_positions(golden):
    case = golden("input_mask_candidates")
    found = case["inputs"]
    positions = exact_matches(found["query_ids"], np.array(found["doc_ids"]), found["special"])
    assert positions.tolist() == case["expected"]["positions"]


@settings(deadline=None)
@given(
    query=st.lists(st.integers(0, 9)),
    document=st.lists(st.integers(0, 9)),
    special=st.sets(st.integers(0, 9), max_size=4),
)
def test_matches_by_loops(query, document, special):
    expected = [at for at, piece in enumerate(document) if piece not in special and piece in query]
    assert exact_matches(query, np.array(document, dtype=np.int64), special).tolist() == expected


# -- one owner a document --------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=training_sets(), seed=st.integers(0, 9))
def test_every_query_has_a_copy_of_its_own_documents_and_sees_each_document_once(data, seed):
    def negatives(at, rng):
        return [d for d in data.documents if d not in data.relevant_to(data.examples[at])][:2]

    batch = make_batch(data, range(len(data)), [negatives], np.random.default_rng(seed))
    found, owners = one_owner_each(batch)
    assert len(owners) == len(found.documents) == int((batch.targets.own >= 0).sum())
    for row, (old, new) in enumerate(
        zip(batch.targets.own.tolist(), found.targets.own.tolist(), strict=True)
    ):
        assert [at < 0 for at in old] == [at < 0 for at in new]
        for before, after in zip(old, new, strict=True):
            if after >= 0:
                assert owners[after] == row
                assert found.document_ids[after] == batch.document_ids[before]
                assert found.documents[after] == batch.documents[before]
        seen = [
            name for name, there in zip(found.document_ids, found.targets.allowed[row], strict=True) if there
        ]
        allowed = [
            n for n, there in zip(batch.document_ids, batch.targets.allowed[row], strict=True) if there
        ]
        assert sorted(seen) == sorted(allowed), "the same candidates, each once"
        for after in (at for at in new if at >= 0):
            old_column = batch.document_ids.index(found.document_ids[after])
            assert found.targets.allowed[row, after] == batch.targets.allowed[row, old_column]


# -- what is hidden --------------------------------------------------------------------------------------


def batch_of(count=8):
    data = training_set()

    def given(at, rng):
        return data.examples[at].negatives

    return make_batch(data, range(count), [given], np.random.default_rng(0))


@cache
def encoder_of(tiny):
    """Read only."""
    return model(tiny).encoder.query


def altered(tiny, share, number=0, seed=(1, "train"), hide="mask"):
    """Rows of a batch's documents as they are and as they are trained on; each one's query."""
    encoder = encoder_of(tiny)
    batch, owners = one_owner_each(batch_of())
    masks = MatchMasks(encoder.backbone.tokenizer, share, seed, hide)
    alter = masks.documents(batch, owners, number)
    rows = encoder.rows(batch.documents, "document")
    return rows, [alter(at, row) for at, row in enumerate(rows)], [batch.queries[at] for at in owners]


def pieces(tiny, text):
    return encoder_of(tiny).rows([text], "query")[0].ids.tolist()


def test_all_matches_are_hidden_with_probability_1_and_nothing_else_is(tiny_bert_folder):
    hidden = 0
    for row, found, query in zip(*altered(tiny_bert_folder, 1.0), strict=True):
        asked = set(pieces(tiny_bert_folder, query)) - SPECIAL
        for at, (before, after) in enumerate(zip(row.ids, found.ids, strict=True)):
            assert after == (MASK if before in asked else before)
            assert found.spans[at].tolist() == ([0, 0] if before in asked else row.spans[at].tolist())
            hidden += before in asked
        assert found.kinds.tolist() == row.kinds.tolist() and found.text == row.text
    assert hidden > 30


def test_each_position_is_hidden_with_the_probability_asked_for(tiny_bert_folder):
    matched, hidden = 0, 0
    for number in range(40):
        for row, found, query in zip(*altered(tiny_bert_folder, 0.15, number), strict=True):
            asked = set(pieces(tiny_bert_folder, query)) - SPECIAL
            matched += sum(piece in asked for piece in row.ids)
            hidden += int((found.ids == MASK).sum())
    assert abs(hidden - 0.15 * matched) < 4 * (matched * 0.15 * 0.85) ** 0.5 and matched > 2000


def test_dropped_matches_are_those_that_would_be_masked(tiny_bert_folder):
    rows, masked, _ = altered(tiny_bert_folder, 0.5)
    _, dropped, _ = altered(tiny_bert_folder, 0.5, hide="drop")
    for row, hidden, left in zip(rows, masked, dropped, strict=True):
        kept = [at for at, piece in enumerate(hidden.ids) if piece != MASK]
        for name in ("ids", "kinds", "attended", "spans"):
            assert getattr(left, name).tolist() == [getattr(row, name)[at].tolist() for at in kept]
        assert len(left) == len(kept) and left.text == row.text
    assert sum(map(len, dropped)) < sum(map(len, rows)) - 10


def test_draws_are_decided_by_seed_step_and_example(tiny_bert_folder):
    def drawn(number=0, seed=(1, "train")):
        return [found.ids.tolist() for found in altered(tiny_bert_folder, 0.5, number, seed)[1]]

    assert drawn() == drawn()
    assert drawn() != drawn(number=1) and drawn() != drawn(seed=(2, "train"))


def test_a_prompt_is_no_part_of_the_document_and_a_hidden_word_is_no_word(tiny_bert_folder):
    from counterpoint.encode import TextInput, TokenVectors, Transformer, WholeWords

    heads = {"words": WholeWords(), "tokens": TokenVectors()}
    encoder = Encoder(Transformer(str(tiny_bert_folder)), heads, document=TextInput(24, prompt="query the "))
    batch = replace(batch_of(1), queries=("query the cat",), documents=("the dogs cat sat",) * 3)
    alter = MatchMasks(encoder.setup().backbone.tokenizer, 1.0, (1,)).documents(batch, [0] * 3, 0)
    (row,) = encoder.rows(batch.documents[:1], "document")
    found = alter(0, row)
    names = [VOCABULARY[piece] for piece in found.ids]
    assert names == ["[CLS]", "query", "the", "[MASK]", "dogs", "[MASK]", "sat", "[SEP]"]
    tokens = encoder.pad([row, found], "document")
    whole, left = encoder(tokens)["words"].ragged(), encoder(tokens)["words"].ragged().lengths.tolist()
    assert left == [4, 2] and set(whole.ids_of(1)) < set(whole.ids_of(0))
    assert VOCABULARY.index("cat") not in encoder(tokens)["tokens"].ragged().ids_of(1)


def test_every_document_has_draws_of_its_own(tiny_bert_folder):
    """The same text, sixteen times: under two queries, in eight documents of each."""
    encoder = model(tiny_bert_folder).encoder.query
    text = "the cat sat on the mat the cat sat on the mat"
    names = tuple(f"d{at}" for at in range(16))
    batch = replace(batch_of(2), queries=(text,) * 2, documents=(text,) * 16, document_ids=names)
    rows = encoder.rows(batch.documents, "document")

    def hidden(owners, names):
        made = replace(batch, document_ids=names)
        alter = MatchMasks(encoder.backbone.tokenizer, 0.5, (1,)).documents(made, owners, 0)
        return {tuple(alter(at, row).ids.tolist()) for at, row in enumerate(rows)}

    assert len(hidden([0] * 16, names)) > 12  # by the document
    assert len(hidden([0] * 8 + [1] * 8, names[:1] * 16)) == 2  # and by the query


def test_in_pairs_the_document_loses_matches_and_the_query_none(tiny_bert_folder):
    encoder = judge(tiny_bert_folder)
    batch = batch_of(3)
    rows = encoder.rows(*own_pairs(batch))
    alter = MatchMasks(encoder.backbone.tokenizer, 1.0, (1,)).pairs(batch, 0)
    hidden = 0
    for at, row in enumerate(rows):
        found = alter(at, row)
        end = row.ids.tolist().index(VOCABULARY.index("[SEP]"))  # of the query
        asked = set(row.ids[: end + 1].tolist()) - SPECIAL
        for place, (before, after) in enumerate(zip(row.ids, found.ids, strict=True)):
            assert after == (MASK if place > end and before in asked else before)
            hidden += after == MASK
        assert found.segments.tolist() == row.segments.tolist()
        kept = found.ids != MASK
        left = MatchMasks(encoder.backbone.tokenizer, 1.0, (1,), "drop").pairs(batch, 0)(at, row)
        for name in ("ids", "segments", "texts"):
            assert getattr(left, name).tolist() == getattr(row, name)[kept].tolist()
    assert hidden > 10


def test_a_pair_that_is_cut_still_knows_its_two_texts(tiny_bert_folder):
    encoder = InteractiveEncoder(judge(tiny_bert_folder).backbone, judge(tiny_bert_folder).head, max_length=9)
    (row,) = encoder.rows(["cat dog"], ["the dog sat on the mat the cat"])
    assert row.texts.tolist() == [-1, 0, 0, -1, 1, 1, 1, 1, -1]


# -- in training -----------------------------------------------------------------------------------------


def vector_job(tiny, folder, **changes):
    made = Train(
        Contrastive(), Dot("mean"), negatives=(FromData(2),),
        **{"steps": 10, "batch": 4, "lr": 3e-3, "precision": "fp32", "mask_matches": 0.5, **changes},
    )  # fmt: skip
    return new_job(model(tiny), made, folder)


def pair_job(tiny, folder, **changes):
    torch.manual_seed(0)  # the head is drawn when the model is made
    made = Train(
        NegativeLogLikelihood(), negatives=(FromData(2),),
        **{"steps": 10, "batch": 4, "lr": 3e-3, "precision": "fp32", "mask_matches": 0.5, **changes},
    )  # fmt: skip
    return new_job(judge(tiny), made, folder)


def remembering_job(tiny, folder, **changes):
    torch.manual_seed(0)
    return heads_job(tiny, folder, remember=1.0, mask_matches=0.5, **changes)


def new_job(made, stage, folder):
    folder.mkdir(exist_ok=True)
    more = {"development": development_set(), "measures": ("RR@10",)}
    return Job(made, (stage,), training_set(), folder, **more)


def seen_masks(monkeypatch, call):
    """For what the model saw: whether a mask token was in it, and whether that was training."""
    seen = set()
    vectors, pairs = Encoder.forward, InteractiveEncoder.forward

    def look(encoder, given):
        seen.add((bool((given.ids == MASK).any()), encoder.backbone.training))

    monkeypatch.setattr(Encoder, "forward", lambda *given: look(*given) or vectors(*given))
    monkeypatch.setattr(InteractiveEncoder, "forward", lambda *given: look(*given) or pairs(*given))
    call()
    monkeypatch.undo()
    return seen


class Kept(Loss):
    """The contrastive loss, which keeps the first step that it sees."""

    def forward(self, step):
        self.__dict__.setdefault("first", step)
        return Contrastive()(step)


def test_losses_see_each_document_as_its_own_query_leaves_it(tiny_bert_folder, tmp_path, monkeypatch):
    """Documents that two queries share are encoded for each."""
    batches, documents = [], MatchMasks.documents

    def kept(self, batch, owners, number):
        batches.append((batch, owners))
        return documents(self, batch, owners, number)

    monkeypatch.setattr(MatchMasks, "documents", kept)
    loss, made = Kept(), model(tiny_bert_folder, dropout=False)
    start = model(tiny_bert_folder, dropout=False)
    start.load_state_dict(made.state_dict())
    stage = Train(
        loss, Dot("mean"), negatives=(FromData(2),), steps=1, batch=12, precision="fp32", mask_matches=1.0
    )
    train(new_job(made, stage, tmp_path / "run"))
    (batch, owners), step, encoder = batches[0], loss.first, start.encoder.query
    assert len(set(batch.document_ids)) < len(batch.document_ids) == len(step.d["mean"]) == 36
    for at, owner in enumerate(owners):
        tokens = encoder.tokens([batch.documents[at]], "document")
        asked = torch.tensor(sorted(set(pieces(tiny_bert_folder, batch.queries[owner])) - SPECIAL))
        hidden = tokens.ids.masked_fill(torch.isin(tokens.ids, asked), MASK)
        expected = encoder(replace(tokens, ids=hidden))["mean"].values[0]
        torch.testing.assert_close(step.d["mean"].values[at], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("made", [vector_job, pair_job])
def test_only_training_hides_anything(tiny_bert_folder, tmp_path, monkeypatch, made):
    run = made(tiny_bert_folder, tmp_path / "run", evaluate_every=5)
    seen = seen_masks(monkeypatch, lambda: train(run))
    assert seen - {(False, True)} == {(True, True), (False, False)}
    run = made(tiny_bert_folder, tmp_path / "none", mask_matches=0.0)
    assert seen_masks(monkeypatch, lambda: train(run)) == {(False, True), (False, False)}
    assert losses(tmp_path / "run")[0][2] != losses(tmp_path / "none")[0][2]


@pytest.mark.parametrize("made", [vector_job, pair_job])
def test_a_model_that_matches_are_dropped_for_never_sees_a_mask(
    tiny_bert_folder, tmp_path, monkeypatch, made
):
    run = made(tiny_bert_folder, tmp_path / "run", hide="drop", chunk=3)
    assert seen_masks(monkeypatch, lambda: train(run)) == {(False, True), (False, False)}
    train(made(tiny_bert_folder, tmp_path / "none", mask_matches=0.0, chunk=3))
    assert losses(tmp_path / "run")[0][2] != losses(tmp_path / "none")[0][2]


@pytest.mark.parametrize("made", [vector_job, pair_job, remembering_job])
def test_a_run_that_is_cut_goes_on_to_the_same_losses(tiny_bert_folder, tmp_path, made):
    more = {"checkpoint_every": 3, "evaluate_every": 5, "accumulate": 2}
    train(made(tiny_bert_folder, tmp_path / "whole", **more))
    with pytest.raises(Stopped):
        train(made(tiny_bert_folder, tmp_path / "cut", **more), reporter=StopAt(7))
    train(made(tiny_bert_folder, tmp_path / "cut", **more), resume=True)
    assert log(tmp_path / "cut") == log(tmp_path / "whole")
    assert same(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("made", [vector_job, pair_job])
def test_chunks_change_no_step(tiny_bert_folder, tmp_path, made):
    """The second time that a chunk is encoded, the same matches are hidden."""
    start = made(tiny_bert_folder, tmp_path / "start").model.state_dict()
    for name, chunk in (("once", None), ("chunked", 3)):
        run = made(tiny_bert_folder, tmp_path / name, chunk=chunk, keep="last")
        run.model.load_state_dict(start)
        for module in run.model.double().modules():
            if type(module).__name__ == "Dropout":
                module.p = 0.0
        train(run)
    once, chunked = weights(tmp_path / "once"), weights(tmp_path / "chunked")
    for name, tensor in once.items():
        torch.testing.assert_close(chunked[name], tensor, rtol=1e-6, atol=1e-8, msg=name)


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask_matches": 1.5}, "mask_matches is a share between 0 and 1, found 1.5"),
        ({"mask_matches": 0.1, "hide": "blank"}, "hide must be one of mask, drop"),
        ({"mask_matches": 0.1, "mirror": True}, "every query is its own document, so mask_matches"),
        ({"mask_matches": 0.1, "cache": NegativeCache(size=64)}, "the cache keeps one vector of a document"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Train(Contrastive(), Dot("mean"), **changes)


def test_a_vocabulary_without_a_mask_token_is_refused():
    backend = tiny_tokenizer().backend_tokenizer
    bare = Tokenizer(backend, pad="[PAD]", mask=None)
    with pytest.raises(ConfigError, match="this vocabulary has none; remove matches with hide='drop'"):
        MatchMasks(bare, 0.15, (1,))
    assert MatchMasks(bare, 0.15, (1,), "drop")
    assert Tokenizer(backend, pad="[PAD]", mask="[MASK]").special_ids == SPECIAL

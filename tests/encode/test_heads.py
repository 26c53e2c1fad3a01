"""Tokens and heads on a tiny BERT, each formula again by loops."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encode.tiny import TEXTS
from torch.testing import assert_close

from counterpoint.encode import (
    PUNCTUATION,
    Cls,
    Encoder,
    Kind,
    Linear,
    Mean,
    Stack,
    TextInput,
    TokenVectors,
    Transformer,
    WholeWords,
    WordSettings,
    split_words,
    stem,
    word_id,
)
from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.transform import FlowTraining, Nice, Whitening


@pytest.fixture(scope="module")
def backbone(tiny_bert_folder):
    return Transformer(str(tiny_bert_folder)).setup().eval()


def encoder(backbone, head, **sides):
    return Encoder(backbone, {"it": head}, **sides).setup().eval()


@torch.inference_mode()
def run(made, texts, side="document"):
    tokens = made.tokens(texts, side)
    return tokens, made.backbone(tokens), made(tokens)["it"]


def names(made, ids):
    return [made.backbone.tokenizer.name_of(number) for number in ids.tolist()]


# -- how texts become tokens ---------------------------------------------------------------------------


def test_colbert_query_ids(backbone):
    """[CLS] [Q] tokens [SEP], [MASK] up to the length, with attention 0 (PAPERS, section 0)."""
    made = encoder(backbone, TokenVectors(), query=TextInput(12, marker="[unused0]", expand_to=12))
    tokens = made.tokens(["red house", "cat " * 20], "query")
    assert names(made, tokens.ids[0]) == ["[CLS]", "[unused0]", "red", "house", "[SEP]", *["[MASK]"] * 7]
    assert names(made, tokens.ids[1]) == ["[CLS]", "[unused0]", *["cat"] * 9, "[SEP]"]
    assert tokens.attention.sum(1).tolist() == [5, 12]
    assert tokens.kinds[0].tolist() == [
        Kind.SPECIAL, Kind.MARKER, Kind.TEXT, Kind.TEXT, Kind.SPECIAL, *[Kind.EXPANSION] * 7,
    ]  # fmt: skip
    assert tokens.spans[0, 2:5].tolist() == [[0, 3], [4, 9], [0, 0]]


def test_attended_expansion(backbone):
    made = encoder(backbone, TokenVectors(), query=TextInput(expand_to=9, attend=True, expand_with="the"))
    tokens = made.tokens(["cat"], "query")
    assert tokens.attention.all() and names(made, tokens.ids[0])[3:] == ["the"] * 6


def test_prompt_stands_for_nothing(backbone):
    made = encoder(backbone, WholeWords("lower"), document=TextInput(prompt="query: "))
    tokens, _, words = run(made, ["cat cat"])
    assert tokens.kinds[0].tolist() == [Kind.SPECIAL, *[Kind.PROMPT] * 2, *[Kind.TEXT] * 2, Kind.SPECIAL]
    assert tokens.spans[0].tolist() == [[0, 0], [0, 0], [0, 0], [0, 3], [4, 7], [0, 0]]
    assert words.ids[words.mask].tolist() == [word_id("cat")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TextInput(65), "at most 64"),
        (TextInput(2), "need 3"),
        (TextInput(8, expand_to=9), "more than max_length"),
        (TextInput(marker="[Q]"), r"marker '\[Q\]' is not one entry"),
        (TextInput(marker="[Q]", expand_to=99), "more than max_length.*\n.*not one entry"),
    ],
)
def test_settings_that_cannot_be_carried_out(backbone, settings, message):
    with pytest.raises(ConfigError, match=message):
        Encoder(backbone, {"it": Cls()}, query=settings).setup()


def test_half_characters_are_encoded(backbone):
    made = encoder(backbone, TokenVectors())
    spans = made.spans(["a \ud83d b"], "it", "document")[0]
    assert [span[1:] for span in spans[1:-1]] == [(0, 1), (4, 5)]  # BERT drops U+FFFD, offsets stay


def test_no_texts(backbone):
    made = encoder(backbone, WholeWords())
    assert len(made.tokens([], "query")) == 0


# -- heads -----------------------------------------------------------------------------------------------


def test_cls(backbone):
    _, hidden, made = run(encoder(backbone, Cls(normalise=True)), TEXTS)
    for index in range(len(TEXTS)):
        assert_close(made.values[index, 0], hidden[index, 0] / hidden[index, 0].norm())
    assert made.mask.all() and made.ids is None


@pytest.mark.filterwarnings("ignore:Whitening", "ignore:Nice")
@pytest.mark.parametrize("projection", [None, Linear(6)], ids=["states", "projected"])
def test_maps_of_every_token_come_before_the_mean(backbone, projection):
    """A flow and a sum do not commute: by loops over the tokens that are attended to."""
    flow = Nice(16 if projection is None else 6, width=8, fitting=FlowTraining(steps=5, batch=20, lr=0.1))
    made = encoder(backbone, Mean(projection, True), document=TextInput(expand_to=12))
    _, hidden, _ = run(made, TEXTS)
    project = projection or torch.nn.Identity()
    with torch.no_grad():
        rows = project(hidden.clone().flatten(0, 1))
    whitening = Whitening(flow.dim, rank=3).fit([flow.fit([rows]).latent(rows)[0]])
    mapped = encoder(
        backbone, Mean(projection, True, tokenwise=[flow, whitening]), document=TextInput(expand_to=12)
    )
    tokens, hidden, found = run(mapped, TEXTS)
    assert mapped.sets == {"it": 3} and found.values.shape == (len(TEXTS), 1, 3)
    for text in range(len(TEXTS)):
        total = torch.zeros(3)
        for place in range(hidden.shape[1]):
            if tokens.attention[text, place]:
                with torch.no_grad():
                    row = flow.latent(project(hidden[text, place].clone())[None])[0][0]
                total += (row - whitening.mean_) @ whitening.matrix_
        assert_close(found.values[text, 0], total / total.norm(), atol=1e-4, rtol=1e-4)
    (head,) = mapped.heads.values()
    head.waiting = True
    assert_close(run(mapped, TEXTS)[2].values, run(made, TEXTS)[2].values)


def test_mean(backbone):
    tokens, hidden, made = run(encoder(backbone, Mean()), TEXTS)
    for index in range(len(TEXTS)):
        rows = [hidden[index, at] for at in range(hidden.shape[1]) if tokens.attention[index, at]]
        assert_close(made.values[index, 0], sum(rows) / len(rows))


def test_token_vectors_skip_punctuation_in_documents_only(backbone):
    made = encoder(backbone, TokenVectors(skip=PUNCTUATION, projection=Linear(4, bias=False), normalise=True))
    weight = made.heads["it"].projection.linear_.weight.detach()
    for side, skipped in (("document", "!,.?"), ("query", "")):
        tokens, hidden, vectors = run(made, TEXTS, side)
        for index in range(len(TEXTS)):
            for at, name in enumerate(names(made, tokens.ids[index])):
                assert vectors.mask[index, at] == (name != "[PAD]" and name not in tuple(skipped))
                if vectors.mask[index, at]:
                    mapped = weight @ hidden[index, at]
                    assert_close(vectors.values[index, at], mapped / mapped.norm())
        assert vectors.ids is tokens.ids


def test_words_to_skip_need_a_vocabulary():
    head = TokenVectors(skip=(",",), in_dim=4).setup()
    tokens = run_tokens()
    with pytest.raises(NotFittedError, match="encoder"):
        head(torch.zeros(1, 1, 4), tokens)


def run_tokens():
    from counterpoint.encode import Tokens

    one = torch.ones(1, 1, dtype=torch.int64)
    return Tokens(one, one.bool(), one, torch.zeros(1, 1, 2, dtype=torch.int64), ("a",), "document")


@pytest.mark.parametrize("method", ["snowball", "porter", "nltk", "lower", "none"])
@pytest.mark.parametrize("drop", [False, True])
def test_whole_words(backbone, method, drop):
    """Mean over the word-pieces of all occurrences, found by brute force over character offsets."""
    head = WholeWords(method, drop_punctuation=drop, projection=Linear(5))
    tokens, hidden, made = run(encoder(backbone, head), TEXTS)
    for index, text in enumerate(TEXTS):
        pieces = {}
        end = tokens.spans[index].max() if index == len(TEXTS) - 1 else len(text)
        for word in split_words(text):
            if word.end > end or (drop and not word.text.isalnum()):
                continue
            number = word_id(stem(word.text, method))
            for at, (a, b) in enumerate(tokens.spans[index].tolist()):
                if tokens.kinds[index, at] == Kind.TEXT and word.start <= a < b <= word.end:
                    pieces.setdefault(number, []).append(hidden[index, at])
        rows = made.mask[index]
        assert made.ids[index][rows].tolist() == list(pieces)
        for row, vectors in zip(made.values[index][rows], pieces.values(), strict=True):
            assert_close(row, head.projection(sum(vectors) / len(vectors)), rtol=1e-4, atol=1e-5)


def test_a_word_that_truncation_cuts_has_no_row(backbone):
    made = encoder(backbone, WholeWords("lower"), document=TextInput(8))
    tokens, _, words = run(made, ["cat mouse cat", "cat mous"])
    assert names(made, tokens.ids[0])[2:7] == ["m", "##o", "##u", "##s", "##e"]
    assert words.ids[0][words.mask[0]].tolist() == [word_id("cat"), word_id("mouse")]
    made = encoder(backbone, WholeWords("lower"), document=TextInput(7))
    _, _, words = run(made, ["cat mouse cat", "cat mous"])
    assert words.ids[0][words.mask[0]].tolist() == [word_id("cat")]
    assert words.ids[1][words.mask[1]].tolist() == [word_id("cat"), word_id("mous")]


NAMES = "see checkIfEmpty, is_empty and os.path.is_empty; not 3.14 nor cat"


def test_names_of_several_words_are_words_and_so_are_their_pieces(backbone):
    """Each is the mean of its word-pieces, wherever it occurs, found by brute force over characters."""
    made = encoder(backbone, WholeWords("lower"), identifiers=True)
    tokens, hidden, words = run(made, [NAMES])
    found = made.spans([NAMES], "it", "document")[0]
    assert [span.text for span in found] == (
        "see checkIfEmpty check If Empty , is_empty is _ and os.path.is_empty os . path ; not 3 14 nor cat"
    ).split()
    for row, name in enumerate(found):
        inside = [
            at
            for at, (start, end) in enumerate(tokens.spans[0].tolist())
            for match in re.finditer(re.escape(name.text.lower()), NAMES.lower())
            if match.start() <= start < end <= match.end()
            and (NAMES[start:end].isalnum() or not name.text[0].isalnum())
        ]
        assert words.ids[0, row] == word_id(name.text.lower())
        assert_close(words.values[0, row], hidden[0, inside].mean(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fixed", [None, 64])
def test_prose_has_the_same_words_with_and_without_names(backbone, fixed):
    prose = [text for text in TEXTS if "." not in text.rstrip(".")]
    plain, named = (encoder(backbone, WholeWords(), identifiers=names) for names in (False, True))
    one, other = (run(made, prose)[2] for made in (plain, named))
    assert (one.ids == other.ids[:, : one.ids.shape[1]]).all() and not other.ids[:, one.ids.shape[1] :].any()
    assert_close(one.values, other.values[:, : one.values.shape[1]], rtol=0, atol=0)


@given(st.lists(st.sampled_from(["cat", "Dog", "_", ".", "2", "run", " ", "IF", "\u4e2d", "x"]), max_size=24))
def test_however_names_are_put_together_places_and_rows_fit(backbone, pieces):
    text = "".join(pieces)
    made = encoder(backbone, WholeWords("lower"), document=TextInput(24), identifiers=True)
    _, hidden, words = run(made, [text])
    spans = made.spans([text], "it", "document")[0]
    ids = words.ids[0][words.mask[0]].tolist()
    assert ids == [word_id(span.text.lower()) for span in spans] and len(set(ids)) == len(ids)
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert hidden.isfinite().all() and words.values.isfinite().all()


def test_names_are_cut_for_the_backbone_but_for_those_that_it_knows(backbone):
    made = encoder(backbone, TokenVectors(), identifiers=True)
    tokens = made.tokens(["catDog catMat is_empty2Run"], "document")
    assert names(made, tokens.ids[0])[1:-1] == "cat dog cat mat is _ e ##m ##p ##t ##y ##2 run".split()
    known = made.tokens(["runNing docuMent"], "document")
    assert names(made, known.ids[0])[1:-1] == ["running", "document"]


def test_scripts_without_spaces(backbone):
    made = encoder(backbone, WholeWords("lower"))
    _, _, words = run(made, ["中文中", "กก ก"])
    assert words.ids[0][words.mask[0]].tolist() == [word_id("中"), word_id("文")]
    assert words.ids[1][words.mask[1]].tolist() == [word_id("กก"), word_id("ก")]


@pytest.mark.parametrize("texts", [["", ""], ["cat", " \n"], ["\u200b\x00"]])
def test_texts_without_words(backbone, texts):
    made = encoder(backbone, WholeWords(projection=Linear(3), normalise=True))
    _, _, words = run(made, texts)
    packed = words.ragged()
    assert len(packed) == len(texts) and packed.lengths[-1] == 0 and packed.dim == 3
    assert not torch.isnan(words.values).any()
    assert made.spans(texts, "it", "document")[-1] == []


def test_colliding_words_share_a_row(backbone):
    made = encoder(backbone, WholeWords("lower", hash_bits=1))
    tokens, hidden, words = run(made, ["cat dog mat"])
    assert words.ids.tolist() == [[1]]
    assert_close(words.values[0, 0], hidden[0, 1:4].mean(0))
    assert list(tokens.words) == [WordSettings("lower", 1)]


@pytest.mark.parametrize(
    "head", [Cls(), Mean(), TokenVectors(skip=PUNCTUATION), WholeWords(), WholeWords("none")]
)
def test_spans_stand_beside_rows(backbone, head):
    made = encoder(backbone, head)
    lengths = run(made, TEXTS)[2].mask.sum(1).tolist()
    spans = made.spans(TEXTS, "it", "document")
    assert [len(row) for row in spans] == lengths
    if head.pooled:
        with pytest.raises(ConfigError, match="its rows have no ids"):
            made.row_ids(TEXTS, "it", "document")
    else:
        packed = run(made, TEXTS)[2].ragged()
        for i, ids in enumerate(made.row_ids(TEXTS, "it", "document")):
            assert ids.tolist() == packed.ids_of(i).tolist()
    for text, row in zip(TEXTS, spans, strict=True):
        assert all(text[span.start : span.end] == span.text or span.end == 0 for span in row)


def test_spans_name_what_has_no_place(backbone):
    made = encoder(backbone, TokenVectors(), query=TextInput(marker="[unused0]", expand_to=6))
    spans = made.spans(["The mouse"], "it", "query")[0]
    assert [span.text for span in spans] == ["[CLS]", "[unused0]", "The", "m", "o", "u", "s", "e", "[SEP]"]
    with pytest.raises(ConfigError, match="makes it"):
        made.spans(["a"], "words", "query")


def test_padding_changes_nothing(backbone):
    heads = {"c": Cls(), "m": Mean(), "t": TokenVectors(), "w": WholeWords(normalise=True)}
    made = Encoder(backbone, heads).setup().eval()
    together = made(made.tokens(TEXTS, "query"))
    for index, text in enumerate(TEXTS):
        alone = made(made.tokens([text], "query"))
        for name, vectors in alone.items():
            other = together[name]
            assert_close(
                vectors.values[0][vectors.mask[0]],
                other.values[index][other.mask[index]],
                atol=1e-5,
                rtol=1e-4,
            )


def test_gradients_reach_the_backbone(tiny_bert_folder):
    made = Encoder(Transformer(str(tiny_bert_folder)), {"w": WholeWords(projection=Linear(2))}).setup()
    made(made.tokens(["cat sat"], "document"))["w"].values.sum().backward()
    assert all(parameter.grad is not None for parameter in made.heads.parameters())
    assert made.backbone.model_.get_input_embeddings().weight.grad.abs().sum() > 0


def test_in_dim_is_filled_in_or_checked(backbone):
    head = Cls(projection=Stack([Linear(7, activation="tanh"), Linear(3, residual=True)]))
    made = Encoder(backbone, {"it": head}).setup()
    assert made.sets == {"it": 3} and head.in_dim == 16 and head.projection.layers[1].in_dim == 7
    with pytest.raises(ConfigError, match="in_dim is 4, but the backbone"):
        Encoder(backbone, {"it": Cls(in_dim=4)}).setup()
    with pytest.raises(ConfigError, match="in_dim is unknown"):
        Linear(3).setup()


def test_layers_by_their_formula():
    x = torch.randn(2, 3, 4)
    layer = Linear(5, activation="tanh", residual=True, in_dim=4).setup()
    expected = torch.tanh(x @ layer.linear_.weight.T + layer.linear_.bias) + x @ layer.residual_.weight.T
    assert_close(layer(x), expected)
    assert np.isfinite(layer(x).detach().numpy()).all()

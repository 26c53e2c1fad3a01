"""`counterpoint fit` as a user meets it: a model in, a model out, indexed and searched like any other."""

import json
import re
import weakref

import numpy as np
import pytest
from tests.cli.commands import fails

from counterpoint.cli.sampling import drawn
from counterpoint.data import open_collection
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.encode.checkpoints.modules import A_TEXT
from counterpoint.loading import load_model
from counterpoint.model import Model

TEXTS = ["The quick brown fox jumps over the lazy dog.", "whale"]


@pytest.fixture(scope="module")
def two_sets(tmp_path_factory, tiny_bert_folder):
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    folder = tmp_path_factory.mktemp("models") / "model"
    encoder = Encoder(Transformer(str(tiny_bert_folder), layers=1), heads)
    Model(DualEncoder(encoder), search={"weights": {"tokens": 1.0}}).save(folder)
    return folder


@pytest.mark.parametrize("method", ["whitening", "glow", "nice", "normalise"])
def test_the_model_that_comes_out_is_indexed_and_searched(collection, two_sets, call, tmp_path, method):
    flow = method in ("glow", "nice")
    folder, steps = tmp_path / "fitted", ["--steps", "3", "--rank", "12"] if flow else []
    code, out, err = call(
        "fit",
        method,
        two_sets,
        collection,
        "-o",
        folder,
        "--on",
        "tokens",
        "--documents",
        0,
        *steps,
        "--json",
    )
    assert code == 0, err
    told = json.loads(out)
    assert (told["method"], told["on"], told["level"], told["components"]) == (
        method,
        "tokens",
        "token",
        12 if steps else 16,
    )
    assert told["documents"] == 4 and told["queries"] == 0
    plain, made = load_model(two_sets), load_model(folder)
    rows = plain.encode_document(["The quick brown fox jumps over the lazy dog.", "Whales"])["tokens"].values
    assert told["vectors"] is None if method == "normalise" else told["vectors"] > len(rows)
    assert (told["bits_per_dimension"] is not None) == flow
    assert told["held_out_bits_per_dimension"] is None and told["held_out"] == (0 if flow else None)
    found = made.encode_query(TEXTS)["tokens"].values
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(
        made.encode_query(TEXTS)["mean"].values, plain.encode_query(TEXTS)["mean"].values
    )
    assert call("index", collection, "-o", tmp_path / "index", "--model", folder)[0] == 0
    code, out, _ = call("search", tmp_path / "index", "whale in the sea", "--explain", "--json")
    hits = json.loads(out)["hits"]
    assert code == 0 and len(hits) == 4
    assert made.search == plain.search


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_levels_of_a_mean(collection, two_sets, call, tmp_path, level):
    folder = tmp_path / "fitted"
    code, out, err = call(
        "fit", "whitening", two_sets, collection, "-o", folder, "--on", "mean", "--level", level,
        "--rank", 3, "--shrinkage", "oas", "--power", "-0.25", "--queries", "test",
    )  # fmt: skip
    assert code == 0, err
    assert f"whitening on mean ({level}), 3 components, from 4 documents, 2 queries" in out
    made = load_model(folder)
    (step,) = made.encoder.query.heads["mean"].tokenwise if level == "token" else made.steps("mean")[:1]
    assert (step.rank, step.shrinkage, step.power) == (3, "oas", -0.25) and (step.count_ == 6) == (
        level == "sequence"
    )
    found = made.encode_query(TEXTS)["mean"].values
    assert found.shape == (2, 3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_map_from_elsewhere_is_centred_on_a_collection(collection, two_sets, call, tmp_path):
    """Fitted to queries and documents, then centred on documents alone."""
    first, then = tmp_path / "white", tmp_path / "centred"
    options = ("--on", "mean", "--documents", "0")
    assert call("fit", "whitening", two_sets, collection, "-o", first, *options, "--queries", "test")[0] == 0
    code, out, err = call("fit", "centre", first, collection, "-o", then, *options)
    assert code == 0, err
    assert f"{then}: centre on mean, 16 components, from 4 documents in" in out
    (before, after) = (load_model(folder).steps("mean")[0] for folder in (first, then))
    assert before.matrix_.equal(after.matrix_) and not before.mean_.equal(after.mean_)
    documents = [document.full_text for document in open_collection(collection).documents()]
    tokens = load_model(two_sets).encode_document(documents)["tokens"]
    rows = np.array([tokens[at].mean(0) for at in range(len(documents))])  # as long as means come
    np.testing.assert_allclose(after.mean_, rows.mean(0), atol=1e-2)
    told = json.loads(
        call("fit", "centre", first, collection, "-o", then, *options, "--overwrite", "--json")[1]
    )
    assert (told["level"], told["vectors"], told["kept"]) == (None, None, None)
    again = ("fit", "centre", two_sets, collection, "-o", tmp_path / "m", "--on", "mean")
    assert fails(call(*again), "no map of 'mean' subtracts a mean; fit one first")
    assert fails(call(*again, "--rank", 3), "--rank is for whitening and")
    assert fails(call(*again, "--level", "token"), "--level is for whitening and")
    assert not (tmp_path / "m").exists()


def test_what_a_fit_warns_of_is_said_and_a_sample_is_drawn(collection, tiny_bert_folder, call, tmp_path):
    arguments = ("fit", "whitening", tiny_bert_folder, collection, "--documents", 3, "--json")
    code, out, err = call(*arguments, "-o", tmp_path / "a")
    assert code == 0 and json.loads(out)["documents"] == json.loads(out)["vectors"] == 3
    assert "fitted on 3 vectors of 16 components" in err and "vary in 2 directions only" in err
    assert json.loads(out)["kept"] == 2
    assert (
        call(*arguments, "-o", tmp_path / "b")[0]
        == call(*arguments, "-o", tmp_path / "c", "--seed", 1)[0]
        == 0
    )
    prints = [load_model(tmp_path / name).fingerprint() for name in "abc"]
    assert prints[0] == prints[1] != prints[2]


def test_a_mean_of_many_queries_is_said(collection, two_sets, call, tmp_path):
    arguments = ("fit", "whitening", two_sets, collection, "--on", "mean")
    code, _, err = call(*arguments, "-o", tmp_path / "a", "--queries", "test")
    assert code == 0 and "33% of the texts are queries" in err  # two judged ones and four documents
    assert "are queries" not in call(*arguments, "-o", tmp_path / "b")[2]
    level = ("--level", "token", "--queries", "test")  # a query has fewer tokens than a document
    assert "are queries" not in call(*arguments, "-o", tmp_path / "c", *level)[2]


def test_mistakes(collection, two_sets, call, tmp_path):
    fit = ("fit", "whitening", two_sets, collection, "-o", tmp_path / "m")
    assert fails(call(*fit), "the model has the vector sets mean, tokens; choose one with --on")
    assert fails(call(*fit, "--on", "cls"), "no vector set 'cls'")
    assert fails(call(*fit, "--on", "tokens", "--level", "sequence"), "'tokens' has several rows per text")
    assert fails(call(*fit, "--on", "mean", "--steps", 3), "--steps is for nice and glow")
    assert fails(call("fit", "glow", *fit[2:], "--on", "mean", "--shrinkage", "oas"), "--shrinkage is for")
    assert fails(call("fit", "nice", *fit[2:], "--on", "mean", "--power", "-0.2"), "--power is for whitening")
    assert fails(call(*fit, "--on", "mean", "--power", "0.5"), "should be less than or equal to 0")
    assert fails(call("fit", "glow", *fit[2:], "--on", "mean", "--rank", 3), "dim must divide by 4")
    assert fails(
        call("fit", "normalise", *fit[2:], "--on", "mean", "--rank", 4), "--rank is for whitening and"
    )
    assert fails(
        call(*fit, "--on", "mean", "--shrinkage", "much"), "share from 0 to 1 or 'oas', found 'much'"
    )
    assert fails(call(*fit, "--on", "mean", "--shrinkage", "2"), "shrinkage must be 'oas' or from 0 to 1")
    assert fails(call(*fit, "--on", "mean", "--rank", 99), "rank 99 and dim 16")
    assert fails(call(*fit, "--on", "mean", "--queries", "dev"), "dev")
    assert fails(call("fit", "blackening", *fit[2:]), "blackening")
    assert fails(call(*fit, "--on", "mean", "--seed", "-1"), "--seed")
    assert not (tmp_path / "m").exists()
    (tmp_path / "m").mkdir()
    assert fails(call(*fit, "--on", "mean"), "already exists", "--overwrite")
    (tmp_path / "m" / "thesis.txt").write_text("years")
    err = call(*fit, "--on", "mean", "--overwrite")
    assert fails(err, "'thesis.txt'", "is not replaced") and "encoding" not in err[2]
    (tmp_path / "m" / "thesis.txt").unlink()
    assert call(*fit, "--on", "mean", "--overwrite")[0] == 0 and load_model(tmp_path / "m").steps("mean")


@pytest.mark.filterwarnings("ignore:Whitening")
def test_that_an_inner_product_becomes_a_cosine_is_said(collection, two_sets, call, tmp_path):
    fit = ("fit", "whitening", two_sets, collection, "--on", "tokens", "-o")
    assert "inner products are cosines" in call(*fit, tmp_path / "m")[2]  # as long as the hidden states
    again = ("fit", "whitening", tmp_path / "m", collection, "--on", "tokens", "-o", tmp_path / "n")
    code, _, err = call(*again)
    assert code == 0 and "inner products are cosines" not in err


def test_documents_are_drawn_in_one_pass_that_keeps_no_others():
    class Text:
        def __init__(self, at):
            self.id = str(at)

    def documents(count):
        for at in range(count):
            document = Text(at)
            alive.append(weakref.ref(document))
            yield document
            del document

    alive: list = []
    rng = np.random.default_rng(0)
    chosen = drawn(documents(1000), 20, rng)
    assert len({document.id for document in chosen}) == 20
    assert sum(found() is not None for found in alive) <= 21
    everything = [str(at) for at in range(30)]
    for size in (0, 30, 31):
        assert [document.id for document in drawn(documents(30), size, rng)] == everything


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("whitening", ("--rank", 17), "rank must be from 1 to dim, found rank 17 and dim 16"),
        ("glow", ("--rank", 6), "dim must divide by 4 for 2 levels"),
        ("nice", ("--rank", 5), "dim must be even"),
        ("nice", ("--rank", 18), "found rank 18 and dim 16"),
        ("whitening", ("--level", "sequence", "--on", "tokens"), "has several rows per text"),
    ],
)
def test_what_no_text_can_change_is_refused_before_any_is_read(
    two_sets, call, tmp_path, method, options, message
):
    on = () if "--on" in options else ("--on", "mean")
    found = call("fit", method, two_sets, tmp_path / "no-collection", "-o", tmp_path / "m", *on, *options)
    assert fails(found, message)


def test_a_rank_above_the_number_of_texts_is_refused_before_they_are_encoded(
    collection, two_sets, call, tmp_path, monkeypatch
):
    plain = DualEncoder.encode_document

    def encode(self, texts, *options):
        assert texts == [A_TEXT], "a text was encoded that is not the trial of a model that is loaded"
        return plain(self, texts, *options)

    monkeypatch.setattr(DualEncoder, "encode_document", encode)
    fit = ("fit", "nice", two_sets, collection, "-o", tmp_path / "m", "--on", "mean")
    said = "--rank 4: 4 vectors vary in 3 directions at most; choose --rank 2 or lower, or fit on more texts"
    assert fails(call(*fit, "--rank", 4), said)
    assert fails(call(*fit, "--rank", 2, "--documents", 2), "1 directions at most; fit on more texts")


def test_a_rank_above_the_directions_is_refused_before_texts_are_encoded_again(
    collection, two_sets, call, tmp_path, monkeypatch
):
    """Three texts are equal: six vectors vary in three directions, which the first map finds."""
    with open(collection / "corpus.jsonl", "a") as file:
        for name in ("again", "same"):
            row = {"_id": name, "title": "Whales", "text": "A whale is a mammal that lives in the sea."}
            file.write(json.dumps(row) + "\n")
    encoded, plain = [], DualEncoder.encode_document

    def encode(self, texts, *options):
        encoded.append(len(texts))
        return plain(self, texts, *options)

    monkeypatch.setattr(DualEncoder, "encode_document", encode)
    fit = ("fit", "nice", two_sets, collection, "-o", tmp_path / "m", "--on", "mean", "--rank", 4)
    assert fails(call(*fit), "the 6 vectors vary in 3 directions, fewer than the rank 4; choose the rank 2")
    assert encoded == [1, 6], "the trial of a model that is loaded, then the texts once"
    assert not (tmp_path / "m").exists()


def test_a_flow_of_few_rows_says_so_and_how_well_it_describes_others(collection, two_sets, call, tmp_path):
    fit = ("fit", "nice", two_sets, collection, "--steps", 3, "--on", "mean")
    code, out, err = call(*fit, "-o", tmp_path / "m")
    assert code == 0 and "Nice: the 4 vectors vary in 3 of 16 directions" in err
    assert "fitted on 4 vectors of 16 components" in err and "too few to hold some out" in out
    with open(collection / "corpus.jsonl", "a") as file:
        for at in range(38):
            row = {
                "_id": f"n{at}",
                "title": "",
                "text": f"the {'red blue'.split()[at % 2]} cat {at} dog {at // 3}",
            }
            file.write(json.dumps(row) + "\n")
    code, out, err = call(*fit, "-o", tmp_path / "n", "--rank", 8)
    assert code == 0 and "Nice: fitted on 40 vectors of 8 components" in err
    bits = r"40 vectors, (-?\d+\.\d{3}) bits per component \((-?\d+\.\d{3}) on 2 held-out vectors\)"
    assert re.search(bits, out), out

"""HIL as a whole on a tiny BERT: it starts from any ColBERT, its two spaces part, matches count 1."""

import json

import pytest
import torch
from tests.encode import formats
from tests.learn.small import training_set
from torch.testing import assert_close

from counterpoint.encode import (
    PUNCTUATION,
    DualEncoder,
    Encoder,
    Linear,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
    load_encoder,
)
from counterpoint.learn import Fit, FromData, InterIso, Job, PairwiseCrossEntropy, Step, Targets, Train, train
from counterpoint.learn.start import Start
from counterpoint.loading import load_model
from counterpoint.measure.inter_iso import delta_inter_iso, pair_inter_iso
from counterpoint.model import Model
from counterpoint.recipe import load_recipe
from counterpoint.score import MaxSim, ZScore

SETS = {"l": Static, "h": TokenVectors}
QUERY, DOCUMENT = TextInput(16, marker="[unused0]", expand_to=16), TextInput(24, marker="[unused1]")


def encoder(folder, dim=8, layers=1, sets=("l", "h")):
    heads = {
        on: SETS[on](skip=PUNCTUATION, projection=Linear(dim, bias=False), normalise=True) for on in sets
    }
    return Encoder(Transformer(str(folder), layers=layers), heads, QUERY, DOCUMENT)


def trained(folder, place, weights, steps):
    """HIL with weights of the two regularisers."""
    low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(MaxSim("h"))
    objective = (
        PairwiseCrossEntropy("l", low)
        + PairwiseCrossEntropy("h", high)
        + InterIso("l", weights[0], absolute=True)
        + InterIso("h", weights[1], absolute=False)
    )
    stages = (
        Fit("l", what="idf", documents=None),
        Train(objective, low + high, steps=steps, batch=8, lr=5e-3, keep="last", negatives=(FromData(),)),
    )
    place.mkdir()
    torch.manual_seed(5)
    return load_model(train(Job(Model(DualEncoder(encoder(folder))), stages, training_set(), place)))


def inter_iso(model):
    """InterIso of L and H over queries and their own documents, and ΔInterIso."""
    data = training_set()
    q, d = (
        model.encode_query(list(data.queries.values())),
        model.encode_document(list(data.documents.values())),
    )
    low, high = (pair_inter_iso(q[on], d[on]) for on in "lh")
    return low.mean(), high.mean(), delta_inter_iso(high, low)


def test_the_regularisers_part_the_spaces(tiny_bert_folder, tmp_path):
    """ΔInterIso: either alone widens it, both most (PAPERS, section 1, acceptance b; which of the two does
    more depends on how far apart the spaces are at first)."""
    weights = {"none": (0.0, 0.0), "l": (3.0, 0.0), "h": (0.0, -3.0), "both": (3.0, -3.0)}
    found = {
        name: inter_iso(trained(tiny_bert_folder, tmp_path / name, both, 8)) for name, both in weights.items()
    }
    delta = {name: values[2] for name, values in found.items()}
    assert delta["both"] > max(delta["l"], delta["h"])
    assert min(delta["l"], delta["h"]) > delta["none"] + 0.03
    assert abs(found["l"][0]) < abs(found["none"][0]) / 2 and found["h"][1] > found["none"][1]


def test_a_piece_that_stands_in_the_document_matches_with_1(tiny_bert_folder):
    """M_L = 1 for it, wherever it stands (PAPERS, section 1, acceptance a)."""
    model = Model(DualEncoder(encoder(tiny_bert_folder, sets=("l",)))).setup().eval()
    with torch.no_grad():
        q = model(model.encoder.query.tokens(["where is the cat"], "query"))
        d = model(model.encoder.query.tokens(["a cat sat, the dog is in the house", "dog"], "document"))
    matches = MaxSim("l").matches(q, d)[0]
    for row, number in enumerate(q["l"].ids[0].tolist()):
        for document in range(2):
            if number in d["l"].ids[document][d["l"].mask[document]].tolist():
                assert matches[row, document].item() == pytest.approx(1.0, abs=1e-6)
    assert (matches[:, 0] > 1 - 1e-6).sum() == 5  # [CLS], is, the, cat, [SEP]


def test_it_starts_from_a_colbert_that_was_trained(tiny_bert_folder, tmp_path):
    """The projection of its tokens goes on as that of H; L's is new."""
    heads = {"tokens": TokenVectors(projection=Linear(8, bias=False), normalise=True)}
    colbert = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=1, random=True), heads)))
    colbert.save(tmp_path / "colbert")
    hil = Model(DualEncoder(encoder(tiny_bert_folder))).setup()
    found = Start.find(str(tmp_path / "colbert"), load_recipe("hil-paper").start_names).give(hil)
    assert found.new == ("encoder.query.heads.l.projection.linear_.weight",) and not found.unused
    theirs, ours = colbert.encoder.query, hil.encoder.query
    assert_close(ours.heads["h"].projection.linear_.weight, theirs.heads["tokens"].projection.linear_.weight)
    assert_close(ours.backbone.embeddings.weight, theirs.backbone.embeddings.weight)
    assert load_recipe("hil").start_names == load_recipe("hil-paper").start_names


def test_it_starts_from_a_published_checkpoint(tiny_bert_folder, tmp_path):
    """ColBERTv2-HIL: the authors' format, saved as a model, then the start of a run."""
    formats.save_stanford(tmp_path / "v2")
    published = load_encoder(tmp_path / "v2")
    published.save(tmp_path / "saved")
    hil = Model(DualEncoder(encoder(tiny_bert_folder, layers=None))).setup()
    found = Start.find(str(tmp_path / "saved"), load_recipe("hil-paper").start_names).give(hil)
    theirs, ours = published.query, hil.encoder.query
    assert_close(ours.heads["h"].projection.linear_.weight, theirs.heads["tokens"].projection.linear_.weight)
    assert_close(ours.backbone.embeddings.weight, theirs.backbone.embeddings.weight)
    assert not found.unused and found.new == ("encoder.query.heads.l.projection.linear_.weight",)


def module(folder, on):
    """A ColBERT of one layer; its weights follow from its name."""
    torch.manual_seed(len(on))
    heads = {on: TokenVectors(projection=Linear(8, bias=False), normalise=True)}
    made = Model(
        DualEncoder(Encoder(Transformer(str(folder), layers=1, random=True), heads, QUERY, DOCUMENT))
    )
    made.setup()
    for part in made.modules():
        if type(part).__name__ == "Dropout":
            part.p = 0.0  # which would be drawn for both modules in turn
    return made


def test_the_modules_of_an_ensemble_learn_as_they_would_alone(tiny_bert_folder, tmp_path):
    """ColBERT-λ: trained in one run, each module ends with the weights of a run of its own."""
    shape = {"iso": InterIso("iso", 0.4), "aniso": InterIso("aniso", -0.1)}
    losses = {on: PairwiseCrossEntropy(f"late_{on}", 8 * MaxSim(on)) + shape[on] for on in shape}
    how = {"steps": 4, "batch": 8, "lr": 1e-2, "keep": "last", "negatives": (FromData(),), "clip": None}

    def run(name, model, objective, scorer):
        (tmp_path / name).mkdir()
        job = Job(model, (Train(objective, scorer, **how),), training_set(), tmp_path / name)
        return load_model(train(job))

    alone = {
        on: run(on, module(tiny_bert_folder, on), losses[on], 8 * MaxSim(on)).encoder.query for on in shape
    }
    iso, aniso = (module(tiny_bert_folder, on).encoder.query for on in shape)
    heads, own = {**iso.heads, **aniso.heads}, {"aniso": aniso.backbone}
    both = Model(DualEncoder(Encoder(iso.backbone, heads, QUERY, DOCUMENT, own)))
    started = aniso.backbone.embeddings.weight.detach().clone()
    scorer = 8 * MaxSim("iso") + 8 * MaxSim("aniso")
    found = run("both", both, losses["iso"] + losses["aniso"], scorer).encoder.query
    for on, one in alone.items():
        theirs = {**dict(one.backbone.named_parameters()), **dict(one.heads[on].named_parameters())}
        ours = {
            **dict(found.backbone_of(on).named_parameters()),
            **dict(found.heads[on].named_parameters()),
        }
        for name, weight in theirs.items():
            assert_close(
                ours[name], weight, rtol=1e-4, atol=1e-5, msg=lambda said, name=name: f"{name}: {said}"
            )
    assert (found.backbone_of("aniso").embeddings.weight - started).abs().max() > 0.01


def test_padding_enters_no_regulariser(tiny_bert_folder):
    """One text alone and next to a longer one: the same rows, the same InterIso."""
    model = Model(DualEncoder(encoder(tiny_bert_folder))).setup().eval()
    data = training_set()
    texts = [data.documents["d0"], data.documents["d2"] * 2]
    with torch.no_grad():
        q = model(model.encoder.query.tokens(["where is cat"], "query"))
        alone = model(model.encoder.query.tokens(texts[:1], "document"))
        longer = model(model.encoder.query.tokens(texts, "document"))
    assert q["h"].mask.all() and not longer["h"].mask.all()
    for on in "lh":
        targets = Targets(torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool))
        found = [InterIso(on)(Step(q, d, torch.zeros(1, len(d[on])), targets)) for d in (alone, longer)]
        assert_close(*found, rtol=1e-5, atol=1e-6)


def test_the_log_names_every_term(tiny_bert_folder, tmp_path):
    trained(tiny_bert_folder, tmp_path / "r", (0.3, -0.3), 1)
    lines = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert {"l", "h", "inter_iso_1", "inter_iso_2"} <= lines[-1].keys()

"""Learned sparse and interactive recipes end to end: trained a few steps, indexed, searched as they score."""

import numpy as np
import pytest
import torch
from tests.learn.small import development_set, training_set
from tests.learn.test_trainer import StopAt, Stopped, log, losses

from counterpoint.encode import load_interactive
from counterpoint.index import Index, build_index
from counterpoint.learn import Job, train
from counterpoint.loading import load_model
from counterpoint.recipe import change, load_recipe
from counterpoint.score import MaxSim
from counterpoint.search import Searcher
from counterpoint.types import Document
from counterpoint.vectors import Vectors

DATA = training_set()
SIZES = ["stages.0.steps=12", "stages.0.batch=6", "stages.0.evaluate_every=6", "stages.0.chunk=5"]
TINY = {
    "sparterm": [
        "model.encoder.query.backbone.source={}", "model.encoder.query.backbone.layers=2",
        "model.encoder.query.document.max_length=40", "stages.0.lr=1e-3", "stages.0.lr_factors={{}}",
        "stages.0.precision=fp32",
    ],
    "cross-encoder": ["model.backbone.source={}", "model.max_length=40", "stages.0.lr=1e-3"],
}  # fmt: skip


def job(tiny, folder, name, *more):
    """A shipped recipe on the tiny model, with a gate that is open for some terms of so few components."""
    smaller = [change.format(tiny) for change in TINY[name.partition(":")[0]]]
    recipe = change(load_recipe(name), [*SIZES, *smaller, *more]).copy()
    torch.manual_seed(4)
    folder.mkdir(exist_ok=True)
    settings = {"scorer": recipe.scorer, "measures": recipe.measures, "depth": 10, "seed": recipe.seed}
    return Job(
        recipe.declared_model(), recipe.stages, DATA, folder, development=development_set(), **settings
    )


OPEN = "model.encoder.query.heads.terms.gate.bias=-1.5"
NAMES = {"sparterm": [OPEN], "sparterm:input": [OPEN], "sparterm:literal": [], "sparterm:literal-input": []}


@pytest.fixture(scope="module", params=NAMES)
def model(request, tiny_bert_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    place = train(job(tiny_bert_folder, folder, request.param, *NAMES[request.param]))
    assert all(np.isfinite(loss) for *_, loss in losses(folder))
    return load_model(place)


@torch.inference_mode()
def brute_force(model):
    """Σ over terms of the product of weights, text by text."""
    queries = model.encode_query(list(DATA.queries.values()))["terms"]
    documents = model.encode_document(list(DATA.documents.values()))["terms"]
    whole = []
    for packed in (queries, documents):
        table = np.zeros((len(packed), 1000))
        for at in range(len(packed)):
            table[at, packed.ids_of(at)] += packed[at][:, 0]
        whole.append(table)
    padded = ({"terms": Vectors.pad(packed)} for packed in (queries, documents))
    scored = MaxSim("terms", exact=True, floor0=True)(*padded).numpy()
    np.testing.assert_allclose(scored, whole[0] @ whole[1].T, atol=1e-3)
    return whole[0] @ whole[1].T


def test_search_over_the_inverted_index_is_the_inner_product_over_the_vocabulary(model, tmp_path):
    expected = brute_force(model)
    documents = [Document(name, text) for name, text in DATA.documents.items()]
    settings = model.index_settings(codec="float32", lexical=None)
    build_index(documents, model, tmp_path / "i", settings)
    with Index(tmp_path / "i") as index:
        assert index.layouts["terms"].kind == "exact" and index.layouts["terms"].dim == 1
        searcher = Searcher(index, model)
        run = searcher.run(DATA.queries, 100)
        for i, query in enumerate(DATA.queries):
            found = run.scores(query) if query in run else {}
            line = [found.get(document, 0.0) for document in DATA.documents]
            np.testing.assert_allclose(line, expected[i], atol=1e-3)
        for query in list(DATA.queries.values())[:6]:
            for hit in searcher.search(query, 3, explain=True).hits:
                leaves = list(hit.explanation.leaves())
                assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-3)
                for leaf in leaves:
                    if leaf.query is not None and leaf.document is not None:
                        names = {span.text.removeprefix("→").lower() for span in (leaf.query, leaf.document)}
                        assert len({name.removeprefix("##") for name in names}) == 1


def test_documents_are_expanded_only_where_there_is_a_gate(model):
    gated = model.encoder.query.heads["terms"].gate is not None
    weights = model.gate_weights(list(DATA.documents.values()), "terms")
    pieces = [row.ids.tolist() for row in model.encoder.query.rows(list(DATA.documents.values()), "document")]
    beyond = [len(set(weights.ids_of(at).tolist()) - set(own)) for at, own in enumerate(pieces)]
    assert (max(beyond) > 0) == gated and max(beyond) <= 32


def test_sparsity_makes_weights_smaller(tiny_bert_folder, tmp_path):
    totals = []
    for weight in (0.0, 10.0):
        more = [OPEN, f"stages.0.objective.weights=[0, {weight}]", "stages.0.keep=last", "stages.0.lr=1e-2"]
        model = load_model(train(job(tiny_bert_folder, tmp_path / str(weight), "sparterm", *more)))
        totals.append(model.encode_document(list(DATA.documents.values()))["terms"].values.sum())
    assert totals[1] < 0.5 * totals[0]


@pytest.mark.parametrize("name", ["sparterm:input", "cross-encoder:input"])
def test_a_run_that_is_cut_goes_on_to_the_same_losses(tiny_bert_folder, tmp_path, name):
    more = NAMES.get(name, [])
    train(job(tiny_bert_folder, tmp_path / "whole", name, *more))
    with pytest.raises(Stopped):
        train(job(tiny_bert_folder, tmp_path / "cut", name, *more), reporter=StopAt(8))
    train(job(tiny_bert_folder, tmp_path / "cut", name, *more), resume=True)
    assert log(tmp_path / "cut") == log(tmp_path / "whole")


def test_hidden_matches_change_what_a_cross_encoder_learns(tiny_bert_folder, tmp_path):
    scores = []
    for name in ("cross-encoder", "cross-encoder:input"):
        place = train(job(tiny_bert_folder, tmp_path / name.replace(":", "-"), name, "stages.0.keep=last"))
        scores.append(load_interactive(place).scores(["where is cat"], ["the cat in an house"]).item())
    assert scores[0] != scores[1]

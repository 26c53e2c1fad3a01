"""CITADEL's load balancing and L1 by loops, the router's own contrastive loss, and training by all."""

import math

import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses.steps import steps
from tests.learn.small import training_set

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Routed, Router, Transformer
from counterpoint.errors import ConfigError
from counterpoint.learn import Contrastive, Job, RouterBalance, RouterSparsity, Step, Targets, Train, train
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim


@settings(deadline=None, max_examples=40)
@given(step=steps())
def test_balance_is_tokens_sent_times_softmax_by_key(step):
    own = sorted({at for row in step.targets.own.tolist() for at in row if at >= 0})
    expected = 0.0
    for side, texts in ((step.q, range(len(step.targets.own))), (step.d, own)):
        load = side["words.load"].values
        for key in range(load.shape[2]):
            sent = sum(load[at, 0, key].item() for at in texts) / len(texts)
            share = sum(load[at, 1, key].item() for at in texts) / len(texts)
            expected += sent * share
    assert RouterBalance("words")(step).item() == pytest.approx(expected, rel=1e-4)


@settings(deadline=None, max_examples=40)
@given(step=steps())
def test_sparsity_is_the_sum_of_a_documents_weights(step):
    own = sorted({at for row in step.targets.own.tolist() for at in row if at >= 0})
    gates = step.d["words.gate"]
    sums = [sum(gates.values[at, i, 0].item() for i in range(3) if gates.mask[at, i]) for at in own]
    assert RouterSparsity("words")(step).item() == pytest.approx(sum(sums) / len(sums), abs=1e-5)


def test_balance_is_least_where_all_keys_get_the_same():
    """Of 4 tokens and 2 keys: 2·½ + 2·½ evenly, 4·1 where all go to one."""
    from counterpoint.vectors import Vectors

    def loss(sent, shares):
        load = Vectors(torch.tensor([[sent, shares]]), torch.ones(1, 2, dtype=torch.bool))
        targets = Targets(torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool))
        return RouterBalance("r")(Step({"r.load": load}, {"r.load": load}, torch.zeros(1, 1), targets)).item()

    assert loss([2.0, 2.0], [2.0, 2.0]) == pytest.approx(2 * 8)
    assert loss([4.0, 0.0], [4.0, 0.0]) == pytest.approx(2 * 16)


@pytest.mark.parametrize("loss", [RouterBalance("words"), RouterSparsity("words")])
def test_without_a_router_it_says_what_to_do(loss):
    step = Step({}, {}, torch.zeros(1, 1), Targets(torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool)))
    with pytest.raises(ConfigError, match=r"'words' has no router.*head Routed\(Router\(\)\)"):
        loss(step)


def routed(folder, keys=(1, 3)):
    torch.manual_seed(1)
    head = Routed(Router(start="new"), keys=keys, projection=Linear(4))
    heads = {"cls": Cls(Linear(4)), "routed": head}
    model = Model(DualEncoder(Encoder(Transformer(str(folder), layers=1), heads))).setup()
    torch.nn.init.zeros_(head.router.bias_)  # the start is meant for states of some hundred components
    return model


def trained(folder, where, objective, **changes):
    model = routed(folder)
    scorer = Dot("cls") + MaxSim("routed", exact=True, floor0=True)
    stage = Train(objective, scorer, steps=12, batch=6, lr=0.02, learn=("query.heads.*",), **changes)
    train(Job(model, (stage,), training_set(), where))
    return model


def load(model):
    """By key, tokens of the training documents that are sent to it."""
    encoder = model.eval().encoder.query
    encoder.heads["routed"].router.train()
    with torch.no_grad():
        made = model(encoder.tokens(list(training_set().documents.values()), "document"))
    return made["routed.load"].values[:, 0].sum(0), made["routed.gate"].values


def test_balance_spreads_tokens_over_keys_and_sparsity_shrinks_weights(tiny_bert_folder, tmp_path):
    sent, weights = load(routed(tiny_bert_folder))
    spread, _ = load(trained(tiny_bert_folder, tmp_path / "b", 0.1 * RouterBalance("routed")))
    _, small = load(trained(tiny_bert_folder, tmp_path / "s", 0.1 * RouterSparsity("routed")))
    busiest = [(found / found.sum()).max().item() for found in (sent, spread)]
    assert busiest[1] < 0.8 * busiest[0]
    assert small.sum() < 0.85 * weights.sum()


def test_the_routers_whole_vector_is_trained_by_any_loss_and_chunks_change_nothing(
    tiny_bert_folder, tmp_path
):
    """Its own contrastive loss, as it would be by hand on the first step, and in chunks."""
    objective = Contrastive("router", scorer=Dot("routed.router")) + RouterBalance("routed")
    models = [
        trained(tiny_bert_folder, tmp_path / str(chunk), objective, chunk=chunk, precision="fp32")
        for chunk in (None, 2)
    ]
    one, other = (dict(model.named_parameters()) for model in models)
    start = dict(routed(tiny_bert_folder).named_parameters())
    for name, parameter in one.items():
        torch.testing.assert_close(parameter, other[name], atol=1e-3, rtol=1e-3)
    moved = {name for name, parameter in one.items() if not torch.equal(parameter, start[name])}
    router = {name for name in one if ".router." in name}
    assert router <= moved and not [name for name in moved if "backbone" in name]

    model = routed(tiny_bert_folder)
    router = model.eval().encoder.query.heads["routed"].router.train()
    data, encoder = training_set(), model.encoder.query
    sides = []
    for texts, side in ((data.queries, "query"), (data.documents, "document")):
        tokens = encoder.tokens(list(texts.values())[:3], side)
        logits = router.logits(encoder.backbone(tokens), encoder.backbone.embeddings.weight)
        whole = []
        for line, real in zip(logits, tokens.attention, strict=True):
            rows = [line[at].relu().log1p() for at in range(1, len(line)) if real[at]]
            whole.append(torch.stack(rows).max(0).values)
        sides.append((model(tokens), whole))
    targets = Targets(torch.tensor([[0], [1], [2]]), torch.ones(3, 3, dtype=torch.bool))
    found = objective.terms(Step(sides[0][0], sides[1][0], torch.zeros(3, 3), targets))["router"]
    expected = 0.0
    for i, query in enumerate(sides[0][1]):
        scores = [float(query.detach() @ document.detach()) for document in sides[1][1]]
        expected += (math.log(sum(math.exp(s - max(scores)) for s in scores)) + max(scores) - scores[i]) / 3
    assert found.item() == pytest.approx(expected, rel=1e-3)

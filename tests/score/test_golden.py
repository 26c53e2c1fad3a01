"""The papers' worked examples of scoring, from the collection next to the repository."""

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from counterpoint.score import Dot, MaxSim, Mix
from counterpoint.vectors import Vectors

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden" / "golden.json"
pytestmark = pytest.mark.shared


def case(name):
    found = next(c for c in json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"] if c["id"] == name)
    return found["inputs"], found["expected"]


def one(rows, ids=None, keep=None):
    values = torch.tensor([rows], dtype=torch.float64)
    mask = torch.ones(1, len(rows), dtype=torch.bool) if keep is None else torch.tensor([keep])
    return {"w": Vectors(values, mask, None if ids is None else torch.tensor([ids]))}


def test_maxsim():
    inputs, expected = case("maxsim")
    found = MaxSim("w").explain(one(inputs["Eq"]), one(inputs["Ed"]))
    assert found.score == pytest.approx(expected["score"], abs=1e-6)
    assert [leaf.score for leaf in found.leaves()] == pytest.approx(expected["per_query_token"], abs=1e-6)


def colberter():
    """ColBERTer's query, its document as trained (gated words are zero vectors) and as indexed (absent)."""
    inputs, expected = case("colberter_score")
    gates = [max(0.0, gate) for gate in inputs["gate_pre"]]
    gated = [[gate * x for x in row] for gate, row in zip(gates, inputs["d"], strict=True)]
    q = one(inputs["q"], inputs["q_ids"])
    return (
        q,
        one(gated, inputs["d_ids"]),
        one(gated, inputs["d_ids"], [g > 0 for g in gates]),
        expected,
        inputs,
    )


def test_colberter_token_scores():
    q, trained, indexed, expected, _ = colberter()
    for document, options, key in (
        (trained, {}, "token_full_train"),
        (indexed, {}, "token_full_index"),
        (trained, {"exact": True}, "token_em_zerofill_train"),
        (indexed, {"exact": True}, "token_em_zerofill_index"),
    ):
        assert MaxSim("w", **options)(q, document).item() == pytest.approx(expected[key], abs=1e-6)


def test_floor_makes_training_and_index_agree():
    q, trained, indexed, *_ = colberter()
    for exact in (False, True):
        scorer = MaxSim("w", exact=exact, floor0=True)
        assert_close(scorer(q, trained), scorer(q, indexed))


def test_colberter_mix():
    q, trained, _, expected, inputs = colberter()
    cls = {"cls": Vectors(torch.tensor([[[inputs["s_cls"]]]]), torch.ones(1, 1, dtype=torch.bool))}
    unit = {"cls": Vectors(torch.ones(1, 1, 1), torch.ones(1, 1, dtype=torch.bool))}
    for exact, key in ((False, "final_full_train"), (True, "final_em_zerofill_train")):
        mix = Mix([Dot("cls"), MaxSim("w", exact=exact)]).setup()
        with torch.no_grad():
            mix.gamma_.fill_(inputs["gamma"])
        found = mix({**q, **unit}, {**trained, **cls}).item()
        assert found == pytest.approx(expected[key], abs=1e-6)

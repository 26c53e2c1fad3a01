"""The rows of `benchmarks/papers/hil.py` and what its tables say of them."""

from dataclasses import replace

import numpy as np
from benchmarks.papers.hil_rows import SCALES, Budget, rows
from benchmarks.papers.hil_tables import delta, show

from counterpoint.measure.inter_iso import delta_inter_iso
from counterpoint.recipe import check

BEFORE = ("ColBERT, half as long again", "HIL from ColBERT", "HIL λ +0.3 from ColBERT")


def test_rows_have_no_fault_with_and_without_markers():
    plain, marked = rows(Budget()), rows(Budget(marked=True))
    assert plain.keys() == marked.keys() and {"ColBERT", "HIL", "CITADEL-HIL"} <= plain.keys()
    for name in plain.keys() - set(BEFORE):
        assert check(plain[name]) == check(marked[name]) == []
    for name in plain.keys() - {"CITADEL", "CITADEL-HIL"}:
        sides = [found[name].model.encoder.query for found in (plain, marked)]
        assert [side.query.expand_to for side in sides] == [None, 32]
        assert [side.document.marker for side in sides] == [None, "[unused1]"]


def test_rows_of_table_9_have_300_positions_and_nothing_else_is_different():
    found = rows(Budget(curves=False))
    for name in ("ColBERT", "HIL"):
        short, long = (found[row].model.encoder.query.document for row in (name, f"{name}, 300 positions"))
        assert (short.max_length, long.max_length) == (180, 300)
        again = replace(found[name], model=found[f"{name}, 300 positions"].model)
        assert again.fingerprint() == found[f"{name}, 300 positions"].fingerprint()


def test_fixed_scales_rank_as_the_loss_scored():
    found = rows(Budget())
    for name in ("HIL at fixed scales", "HIL without z-scores"):
        model, scorer = found[name].model, found[name].stages[-1].scorer
        leaves = {part.on: weight for part, weight in zip(scorer.parts, scorer.weights, strict=True)}
        assert model.search["weights"] == leaves and model.search["idf"] == {"l": 1.0}, name
    assert found["HIL at fixed scales"].model.search["weights"] == SCALES
    assert "idf" not in found["H only"].model.search


def measured(low, high):
    """One collection in which HIL was trained, with InterIso of each query and document of BM25."""
    cells = {"full": {"nDCG@10": 0.5}, "rerank": {"nDCG@10": 0.5}, "same": None, "easy": 0.5}
    found = {"HIL|l": float(np.mean(low)), "HIL|h": float(np.mean(high))}
    bm25 = {"nDCG@10": 0.4, "easy": 0.4}
    return {"c": {"BM25": bm25, "inter_iso": found, "systems": {"HIL": cells}, "easiest of the others": 0.3}}


def test_delta_is_h_less_l_whatever_its_sign(capsys):
    low, high = np.array([0.25, 0.75, 0.5]), np.array([0.5, 0.25, 0.0])
    found = measured(low, high)
    assert delta(found, "HIL") == delta_inter_iso(high, low) == -0.25
    show({"collections": found})
    printed = capsys.readouterr().out
    assert "ΔInterIso is InterIso of H − of L over every query and each of BM25's first hundred" in printed
    assert "| HIL | 50.00 (46.70) | -0.25 (0.99) |" in printed

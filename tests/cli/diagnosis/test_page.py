"""Sentences follow from numbers; the thresholds are where the page says."""

import pytest

from counterpoint.cli.diagnosis.page import sets_text
from counterpoint.cli.diagnosis.space import delta


def side(**changes):
    return {
        "rows": 500, "dimension": 100, "cosine": 0.05, "partition": 0.8, "iso_score": 0.4, "outliers": [],
        "spread": 0.9, "rank": 40.0, "entropy_rank": 60.0, "first_share": 0.1, **changes,
    }  # fmt: skip


def found(query=None, document=None, **changes):
    scores = {"cosine": 0.5, "partition": 0.3, "iso_score": 0.2}
    whitening = {
        "fitted": 5000, "enough": 1000, "rows": 400, "before": scores,
        "after": {"cosine": 0.0, "partition": 0.9, "iso_score": 0.8}, "ranking": None,
    }  # fmt: skip
    return {
        "pooled": True,
        "query": side(**(query or {})),
        "document": side(**(document or {})),
        "between": {"cosine": 0.1, "kl": None, "delta": 50.0, "room": 1.0},
        "inter_iso": {"pairs": 12, "from": "judged relevant in test", "together": 0.5, "other": 0.1},
        "whitening": whitening,
        **changes,
    }


def page(numbers, **more):
    result = {
        "model": "m", "collection": "c", "split": "test", "sets": {"mean": numbers}, "too_few_rows": {},
        "texts": {"queries": 30, "documents": 500, "pairs": 12, "from": "judged relevant in test"}, **more,
    }  # fmt: skip
    return " ".join(sets_text(result).split())


@pytest.mark.parametrize(
    ("cosine", "answer"), [(0.09, "No."), (0.1, "Slightly."), (0.39, "Slightly."), (0.4, "Yes.")]
)
def test_a_cone_by_the_side_that_is_narrower(cosine, answer):
    assert f"A cone? {answer} Two rows" in page(found(document={"cosine": cosine}))
    assert f"A cone? {answer} Two rows" in page(found(query={"cosine": cosine}))


def test_one_component_has_no_iso_score():
    text = page(found({"iso_score": None}, {"iso_score": None}))
    assert "IsoScore is" not in text and "–" in text


def test_collapse_to_a_point_or_to_few_dimensions():
    assert "Collapsed? No. The effective rank is of the documents 40 (at most 100; 10% of their" in page(
        found()
    )
    assert "Yes: the documents are nearly one point" in page(found(document={"cosine": 0.96}))
    assert "In part: the queries use few dimensions" in page(found(query={"rank": 4.9}))
    text = page(found({"rank": 1.4, "rows": 25}, {"rank": 4.9}))  # 25 queries fill 24 dimensions at most
    assert "In part: the documents use few dimensions" in text and "queries 1 (at most 24;" in text


def test_outliers_are_named_with_their_share_of_the_cone():
    outliers = [
        {"dimension": 7 + at, "magnitude": 1.0, "deviations": 9.0 - at, "cosine_part": 0.05}
        for at in range(6)
    ]
    text = page(found(document={"outliers": outliers, "cosine": 0.4}))
    assert (
        "6 of 100 components" in text and "7 (9.0), 8 (8.0), 9 (7.0), 10 (6.0), 11 (5.0) and 1 more." in text
    )
    assert "They make 75% of the mean cosine." in text
    assert "of the mean cosine" not in page(found(document={"outliers": outliers}))  # there is no cone
    assert "Outliers? None" in page(found())


def test_how_the_sides_lie():
    text = page(found())
    assert "12 pairs (judged relevant in test) have InterIso 0.50, other queries and documents 0.10." in text
    alone = {"pairs": 0, "from": "best by BM25", "together": None, "other": 0.1}
    assert "No pair of texts is known" in page(found(inter_iso=alone))


def ranking(difference, p_value):
    return {
        "measure": "nDCG@10", "queries": 40, "documents": 250, "before": 0.5, "after": 0.5 + difference,
        "difference": difference, "interval": [difference - 0.05, difference + 0.05], "p_value": p_value,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("difference", "p_value", "verdict"),
    [
        (0.1, 0.01, "better"),
        (-0.1, 0.01, "worse"),
        (0.01, 0.4, "not a difference that so few queries can show"),
    ],
)
def test_what_whitening_would_do(difference, p_value, verdict):
    numbers = found()
    numbers["whitening"]["ranking"] = ranking(difference, p_value)
    text = page(numbers)
    assert "cosine 0.50 → 0.00, I(W) 0.30 → 0.90, IsoScore 0.20 → 0.80" in text
    assert "Of 40 queries that rank the 250 documents of that half by cosine, nDCG@10 goes from 0.500" in text
    assert f", {verdict}." in text and "Not on so little" not in text


def test_too_few_rows_are_said_first():
    numbers = found()
    numbers["whitening"]["fitted"] = 300
    text = page(numbers)
    assert "Whitening? Not on so little: 300 rows do not determine 100 directions, 1,000 would" in text
    assert "--sample 1667" in text  # 500 documents gave 300 rows
    assert "Not possible here: why." in page(found(whitening={"refused": "why"}))


def test_the_difference_of_two_sets():
    many = {name: found(pooled=False) for name in "hl"}
    many["l"]["inter_iso"] = {**many["l"]["inter_iso"], "together": -0.1}
    assert delta(many) == {"high": "h", "low": "l", "delta": pytest.approx(0.6)}
    assert delta({**many, "h": found()}) is None  # pooled
    text = page(found(), delta_inter_iso=delta(many))
    assert "ΔInterIso = InterIso of h − of l = 0.60" in text

"""Sentences follow from numbers; the thresholds are where the page says."""

import pytest

from counterpoint.cli.diagnosis.advice import advice
from counterpoint.cli.diagnosis.page import sets_text


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
        "half": {
            "power": -0.25, "after": {"cosine": 0.01, "partition": 0.7, "iso_score": 0.6}, "ranking": None,
        },
    }  # fmt: skip
    return {
        "pooled": True,
        "weighed": False,
        "query": side(**(query or {})),
        "document": side(**(document or {})),
        "between": {"cosine": 0.1, "kl": None, "coincident": 0, "compared": 0, "delta": 50.0, "room": 1.0},
        "inter_iso": {"pairs": 12, "from": "judged relevant in test", "together": 0.5, "other": 0.1},
        "whitening": whitening,
        **changes,
    }


def page(numbers, **more):
    if "refused" not in numbers["whitening"]:
        numbers["whitening"]["advice"] = advice(numbers)
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


def ranking(difference, p_value=0.5):
    return {
        "measure": "nDCG@10", "queries": 40, "documents": 250, "before": 0.5, "after": 0.5 + difference,
        "difference": difference, "interval": [difference - 0.05, difference + 0.05], "p_value": p_value,
    }  # fmt: skip


def cone(whole=None, half=None, fitted=5000, cosine=0.5):
    """A set whose documents have this mean cosine, and how it ranks after either map."""
    numbers = found(document={"cosine": cosine})
    numbers["whitening"].update(fitted=fitted, ranking=whole)
    numbers["whitening"]["half"]["ranking"] = half
    return numbers


@pytest.mark.parametrize(
    ("difference", "p_value", "verdict"),
    [
        (0.1, 0.01, "better"),
        (-0.1, 0.01, "worse"),
        (0.01, 0.4, "not significant with so few queries"),
    ],
)
def test_what_either_map_would_do(difference, p_value, verdict):
    text = page(cone(ranking(-0.2, 0.01), ranking(difference, p_value)))
    assert "nDCG@10 is over 40 queries that rank the 250 documents of that half by cosine." in text
    low, change, high = (
        f"{d:+.3f}".replace("-", "−") for d in (difference - 0.05, difference, difference + 0.05)
    )
    assert (
        "Half the way: cosine 0.50 → 0.01, I(W) 0.30 → 0.70, IsoScore 0.20 → 0.60, nDCG@10 0.500 → "
        f"{0.5 + difference:.3f}: {change} [{low}, {high}], {verdict}."
    ) in text
    assert (
        "The whole way: cosine 0.50 → 0.00, I(W) 0.30 → 0.90, IsoScore 0.20 → 0.80, nDCG@10 0.500 → "
        "0.300: −0.200 [−0.250, −0.150], worse."
    ) in text
    assert "are too few for" not in text


def test_too_few_rows_for_the_whole_way():
    text = page(cone(ranking(0.1, 0.01), ranking(0.05, 0.01), fitted=300))
    assert "by cosine. 300 rows are too few for 100 directions; 1,000 would do" in text
    assert "--sample 1667" in text  # 500 documents gave 300 rows
    assert "Go half the way:" in text and "the whole way needs more rows:" in text
    assert "Not possible here: why." in page(found(whitening={"refused": "why"}))


COMMAND = "counterpoint fit whitening m c -o white"


@pytest.mark.parametrize(
    ("whole", "half", "fitted", "chosen", "why"),
    [
        (0.02, 0.01, 1000, "whole", "the rows suffice, and nDCG@10 does not fall:"),
        (0.02, 0.01, 999, "half", "the whole way needs more rows:"),
        (-0.01, -0.02, 1000, "half", "the whole way loses nDCG@10:"),
        (0.01, 0.02, 1000, "half", "the whole way gains less:"),
        (None, None, 1000, "half", "the effect of the whole way on a ranking is not known here:"),
    ],
)
def test_a_cone_goes_half_the_way_or_the_whole(whole, half, fitted, chosen, why):
    numbers = cone(*(None if at is None else ranking(at) for at in (whole, half)), fitted=fitted, cosine=0.3)
    assert advice(numbers) == chosen
    text = page(numbers)
    power = " --power -0.25" if chosen == "half" else ""
    assert "way: the mean cosine, 0.300, is not below 0.3, " in text
    assert f"{why} {COMMAND}{power} --on mean" in text


def test_sets_that_are_mapped_are_mapped_one_behind_the_other():
    """Two commands that both begin with the model would end with half of what was wanted."""
    numbers = {name: cone(cosine=0.5) for name in ("mean", "words")} | {"cls": cone(cosine=0.1)}
    for one in numbers.values():
        one["whitening"]["advice"] = advice(one)
    text = page(cone(), sets=numbers)
    fit = "counterpoint fit whitening {} c -o {} --power -0.25 --on {}"
    assert fit.format("m", "white-mean", "mean") in text
    assert fit.format("white-mean", "white-words", "words") in text
    assert text.count("counterpoint fit") == 2


def test_rows_that_are_weighed_are_not_asked_for_alignment():
    numbers = found(weighed=True)
    assert "alignment of the sides is not measured" in page(numbers) and "nothing to align" not in page(
        numbers
    )


def test_no_cone_is_left_whatever_the_ranking():
    for chosen in (cone(cosine=0.29), cone(ranking(0.2, 0.01), ranking(0.2, 0.01), cosine=0.29)):
        assert advice(chosen) == "leave"
        text = page(chosen)
        assert "Leave it: the mean cosine, 0.290 of documents and 0.050 of queries, is below 0.3, so" in text
        assert "counterpoint fit" not in page(chosen)


def test_a_cone_that_half_the_way_ranks_worse():
    """With enough rows that is the answer; with few it may be the rows."""
    numbers = cone(ranking(-0.2, 0.01), ranking(-0.1, 0.01))
    assert advice(numbers) == "leave"
    text = page(numbers)
    assert "Leave it, or only centre it (--power 0)" in text and "counterpoint fit" not in text
    numbers = cone(ranking(-0.2, 0.01), ranking(-0.1, 0.01), fitted=300)
    assert advice(numbers) == "half"
    assert f"centre it (--power 0), or fit it on more rows and evaluate it first: {COMMAND}" in page(numbers)


def test_the_command_is_one_line_and_quoted():
    numbers = cone()
    numbers["whitening"]["advice"] = advice(numbers)
    result = {
        "model": "my models/" + "m" * 100, "collection": "c", "sets": {"mean": numbers}, "too_few_rows": {},
        "texts": {"queries": 30, "documents": 500, "pairs": 12, "from": "judged relevant in test"},
    }  # fmt: skip
    (line,) = [line for line in sets_text(result).splitlines() if "counterpoint fit" in line]
    assert line.strip() == (
        f"counterpoint fit whitening 'my models/{'m' * 100}' c -o white --power -0.25 --on mean"
    )


def test_the_difference_of_two_sets():
    many = {name: found(pooled=False) for name in "hl"}
    for one in many.values():
        one["whitening"]["advice"] = advice(one)
    judged = {"delta": None, "pairs": 0, "from": "judged relevant in test"}
    apart = {"high": "h", "low": "l", "delta": -0.5, "pairs": 1200, "from": "BM25", "judged": judged}
    text = page(found(), sets=many, delta_inter_iso=apart)
    assert (
        "ΔInterIso = InterIso of h − of l = −0.50 over 1,200 pairs (BM25); not known without pairs (judged "
        "relevant in test)."
    ) in text
    assert "= −0.50 over 1,200 pairs (BM25)." in page(
        found(), sets=many, delta_inter_iso={**apart, "judged": None}
    )
    assert "ΔInterIso" not in page(found(), delta_inter_iso=None)

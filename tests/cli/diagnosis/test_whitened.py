"""What whitening would do is measured on documents that it was not fitted on."""

from dataclasses import replace

import numpy as np
import pytest

from counterpoint.cli.diagnosis.space import Space
from counterpoint.cli.diagnosis.whitened import Whitened, whitened
from counterpoint.cli.sampling import Sample
from counterpoint.measure import evaluate
from counterpoint.measure.alignment import mean_cosine
from counterpoint.measure.isotropy import iso_score, partition_isotropy
from counterpoint.search import Run
from counterpoint.types import Ragged


def packed(rows):
    return Ragged(np.asarray(rows, np.float32), np.arange(len(rows) + 1))


def space(queries, documents, grades, pooled=True, split="test"):
    texts = {f"q{at}": "" for at in range(len(queries))}, {f"d{at}": "" for at in range(len(documents))}
    sample = Sample(*texts, {}, grades, split)
    return Space("mean", pooled, sample, packed(queries), packed(documents), packed(queries), 0)


@pytest.fixture(scope="module")
def cone():
    """Every query is near one document in all directions, but few of them count for a cosine."""
    rng = np.random.default_rng(0)
    scales = np.array([8, 2, 1, 1, 0.2, 0.1])
    documents = rng.normal(size=(400, 6)) * scales
    queries = documents[:50] + 0.2 * scales * rng.normal(size=(50, 6))
    offset = np.array([0, 0, 30, 0, 0, 0])
    return space(queries + offset, documents + offset, {f"q{at}": {f"d{at}": 1} for at in range(50)})


def test_a_cone_becomes_round_on_documents_it_was_not_fitted_on(cone):
    made = whitened(cone)
    assert isinstance(made, Whitened)
    assert made.fitted == 200 and len(made.held) == 200
    held = cone.documents.values[made.held].astype(np.float64)
    fitted = np.delete(cone.documents.values, made.held, axis=0).astype(np.float64)
    covariance = np.cov(fitted.T)
    values, vectors = np.linalg.eigh(covariance)
    by_hand = (held - fitted.mean(0)) @ vectors / np.sqrt(values)  # up to signs and order
    found = made.numbers()
    assert found["before"]["cosine"] == pytest.approx(mean_cosine(held), abs=1e-4)
    assert found["before"]["cosine"] > 0.9 and abs(found["after"]["cosine"]) < 0.02
    assert found["after"] == pytest.approx(
        {
            "cosine": mean_cosine(by_hand),
            "partition": partition_isotropy(by_hand),
            "iso_score": iso_score(by_hand),
        },
        abs=1e-4,
    )
    half = (held - fitted.mean(0)) @ vectors / values**0.25
    assert found["half"]["power"] == -0.25
    assert found["half"]["after"] == pytest.approx(
        {"cosine": mean_cosine(half), "partition": partition_isotropy(half), "iso_score": iso_score(half)},
        abs=1e-4,
    )
    assert found["after"]["iso_score"] > found["half"]["after"]["iso_score"] > found["before"]["iso_score"]
    assert (found["fitted"], found["enough"], found["rows"]) == (200, 60, 200)
    assert "fitted on 200 rows" in made.about()


def test_the_ranking_before_and_after_is_of_the_held_out_half(cone):
    made = whitened(cone)
    numbers = made.numbers()
    ranking, half = numbers["ranking"], numbers["half"]["ranking"]
    rest = np.delete(cone.documents.values, made.held, axis=0).astype(np.float64)
    values, vectors = np.linalg.eigh(np.cov(rest.T))
    held = [int(at) for at in made.held]
    judged = {f"q{at}": {f"d{at}": 1} for at in range(50) if at in held}
    assert (ranking["queries"], ranking["documents"]) == (len(judged), 200)
    for value, change in (
        (ranking["before"], lambda rows: rows),
        (half["before"], lambda rows: rows),
        (ranking["after"], made.apply),
        (half["after"], lambda rows: (rows - rest.mean(0)) @ vectors / values**0.25),
    ):
        queries, documents = change(cone.queries.values), change(cone.documents.values)
        run = {}
        for query in judged:
            a = queries[int(query[1:])]
            run[query] = {
                f"d{at}": float(a @ documents[at] / np.linalg.norm(a) / np.linalg.norm(documents[at]))
                for at in held
            }
        expected = evaluate(Run(run), judged, ["nDCG@10"]).measures["nDCG@10"]
        assert value == pytest.approx(expected, abs=1e-3)
    assert ranking["difference"] == pytest.approx(ranking["after"] - ranking["before"])
    assert ranking["difference"] > 0.1 and ranking["p_value"] < 0.05
    low, high = ranking["interval"]
    assert low < ranking["difference"] < high


def test_maps_are_fitted_to_vectors_as_long_as_they_come(cone):
    """A set of unit vectors is compared as it is, and whitened as it was before."""

    def unit(rows):
        return packed(rows.values / np.linalg.norm(rows.values, axis=1, keepdims=True))

    scaled = replace(
        cone, **{side: unit(getattr(cone, side)) for side in ("queries", "documents", "crossed")}
    )
    found, plain = whitened(replace(scaled, raw=cone)).numbers(), whitened(cone).numbers()
    assert found["after"] == plain["after"] and found["half"]["after"] == plain["half"]["after"]
    assert found["ranking"]["after"] == plain["ranking"]["after"]
    assert found["before"]["cosine"] == pytest.approx(plain["before"]["cosine"], abs=1e-4)
    assert whitened(scaled).numbers()["after"] != plain["after"]


def test_no_ranking_without_judgements_or_with_many_rows_a_text(cone):
    vectors = cone.queries.values, cone.documents.values, cone.sample.grades
    for changes in ({"split": None}, {"pooled": False}):
        numbers = whitened(space(*vectors, **changes)).numbers()
        assert numbers["ranking"] is None and numbers["half"]["ranking"] is None


def test_what_cannot_be_whitened_says_why():
    assert "all 5 are equal" in whitened(space(np.ones((3, 4)), np.ones((10, 4)), {}))
    assert "too few" in whitened(space(np.ones((3, 4)), np.ones((2, 4)), {}))

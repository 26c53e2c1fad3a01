"""Every measure against loops, the worked examples, and clouds whose answer is known."""

import math

import numpy as np
import pytest

from counterpoint.errors import DataError, ShapeError
from counterpoint.measure.alignment import mean_cosine
from counterpoint.measure.isotropy import (
    IsotropyStream,
    cosine_parts,
    iso_score,
    isotropy,
    outlier_dimensions,
    partition_isotropy,
)


def cloud(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return 0.7 + rng.normal(size=(n, d)) * np.arange(1, d + 1)


def unit(row):
    return [value / math.sqrt(sum(v * v for v in row)) for value in row]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def partition_by_loops(rows, directions):
    sums = [sum(math.exp(dot(row, a)) for row in rows) for a in directions]
    return min(sums) / max(sums)


def eigenvectors(rows):
    return np.linalg.eig(np.array(rows).T @ np.array(rows))[1].T.real


@pytest.mark.parametrize("as_unit", [True, False])
def test_partition_isotropy_by_loops(as_unit):
    x = cloud()
    rows = [unit(row) if as_unit else list(row) for row in x]
    found = eigenvectors(rows)
    both = partition_by_loops(rows, [*found, *-found])
    assert partition_isotropy(x, unit=as_unit) == pytest.approx(both, rel=1e-9)
    positive = [a if a.sum() > 0 else -a for a in found]
    by_loops = partition_by_loops(rows, positive)
    assert partition_isotropy(x, signs="positive", unit=as_unit) == pytest.approx(by_loops, rel=1e-9)
    assert by_loops != pytest.approx(both, rel=1e-2)


def test_the_worked_example_of_partition_isotropy(golden):
    case = golden("i_w")
    x = np.array(case["inputs"]["W"])
    found = {
        "raw_fixed_sign": partition_isotropy(x, signs="positive", unit=False),
        "raw_both_signs": partition_isotropy(x, unit=False),
        "unit_fixed_sign": partition_isotropy(x, signs="positive"),
        "unit_both_signs": partition_isotropy(x),
    }
    assert found == pytest.approx(case["expected"], abs=case["tol"])


def test_fewer_rows_than_components_leave_directions_out():
    """Of three rows of five components the eigenvectors that count are the three that are not of value 0."""
    x = cloud(3, 5)
    rows = [unit(row) for row in x]
    values, vectors = np.linalg.eigh(np.array(rows).T @ np.array(rows))
    leading = vectors.T[np.argsort(-values)[:3]]
    assert partition_isotropy(x) == pytest.approx(partition_by_loops(rows, [*leading, *-leading]), rel=1e-9)


def test_long_rows_do_not_overflow():
    x = 1000 * cloud()
    assert 0 <= partition_isotropy(x, unit=False) < 1e-100


@pytest.mark.parametrize(("rows", "raw", "unit"), [(50, 0.09, 0.88), (1000, 0.57, 0.98)])
def test_the_number_of_rows_rules_on_raw_vectors_and_little_on_unit_ones(rows, raw, unit):
    """White vectors, as the docstring has them."""
    clouds = [np.random.default_rng(seed).normal(size=(rows, 64)) for seed in range(5)]
    assert np.mean([partition_isotropy(x, unit=False) for x in clouds]) == pytest.approx(raw, abs=0.02)
    assert np.mean([partition_isotropy(x) for x in clouds]) == pytest.approx(unit, abs=0.02)


def test_average_cosine_is_that_of_the_worked_example(golden):
    case = golden("avgcos")
    x, expected = np.array(case["inputs"]["W"]), case["expected"]
    assert mean_cosine(x) == pytest.approx(expected["avgcos"], abs=case["tol"])
    assert 2 * mean_cosine(x) == pytest.approx(expected["printed_formula"], abs=case["tol"])


def test_the_regulariser_over_all_pairs_is_the_average_cosine_in_another_unit(golden):
    """CosReg divides the same sum by M², not by M(M − 1)."""
    case = golden("cosreg")
    x = np.array(case["inputs"]["X"])
    assert mean_cosine(x) == pytest.approx(case["expected"]["avgcos"], abs=case["tol"])
    share = (len(x) - 1) / len(x)
    assert mean_cosine(x) * share == pytest.approx(case["expected"]["cosreg"], abs=case["tol"])


def iso_score_as_published(x):
    """Rudman et al. 2022, algorithm 1, step by step."""
    n = x.shape[1]
    variances = np.linalg.eigvalsh(np.cov(x.T))
    scaled = math.sqrt(n) * variances / math.sqrt(sum(v * v for v in variances))
    defect = math.sqrt(sum((s - 1) ** 2 for s in scaled)) / math.sqrt(2 * (n - math.sqrt(n)))
    phi = (n - defect**2 * (n - math.sqrt(n))) ** 2 / n**2
    return (n * phi - 1) / (n - 1)


@pytest.mark.parametrize("shape", [(40, 6), (5, 9)])
def test_iso_score_is_the_published_definition(shape):
    x = cloud(*shape)
    assert iso_score(x) == pytest.approx(iso_score_as_published(x), rel=1e-9)
    assert iso_score(x + 100) == pytest.approx(iso_score(x), rel=1e-6)


def with_variances(variances):
    """Rows whose principal variances have these ratios: one either way on every axis."""
    steps = np.diag(np.sqrt(variances))
    return np.concatenate([steps, -steps])


@pytest.mark.parametrize("name", ["isoscore_identity", "isoscore_line", "isoscore_k_of_n"])
def test_the_worked_examples_of_iso_score(golden, name):
    case = golden(name)
    found = iso_score(with_variances(case["inputs"]["pca_variances"]))
    assert found == pytest.approx(case["expected"]["isoscore"], abs=case["tol"])
    assert found == pytest.approx(case["expected"]["via_pr"], abs=case["tol"])


def test_k_equal_directions_of_n():
    for n in (2, 5, 16):
        for k in range(1, n + 1):
            found = iso_score(with_variances([1.0] * k + [0.0] * (n - k)))
            assert found == pytest.approx((k - 1) / (n - 1), abs=1e-9)
    assert iso_score(np.ones((3, 4))) == 0


def test_what_each_component_adds_to_the_cosine():
    x = cloud(7, 4)
    for component in range(4):
        pairs = [
            unit(a)[component] * unit(b)[component]
            for i, a in enumerate(x)
            for j, b in enumerate(x)
            if i != j
        ]
        assert cosine_parts(x)[component] == pytest.approx(np.mean(pairs))
    assert cosine_parts(x).sum() == pytest.approx(mean_cosine(x))


def test_outlier_dimensions():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 96))
    assert outlier_dimensions(x) == []
    x[:, 7] += 20
    x[:, 30] *= 12
    found = outlier_dimensions(x)
    assert [outlier.dimension for outlier in found] == [7, 30]
    sizes = [np.mean([abs(row[j]) for row in x]) for j in range(96)]
    mean = sum(sizes) / 96
    deviation = math.sqrt(sum((size - mean) ** 2 for size in sizes) / 96)
    assert found[0].magnitude == pytest.approx(sizes[7])
    assert found[0].deviations == pytest.approx((sizes[7] - mean) / deviation)
    assert found[0].cosine_part == pytest.approx(cosine_parts(x)[7])
    # One points somewhere and makes the cone; the other has both signs and makes none.
    assert found[0].cosine_part > 0.9 * mean_cosine(x) and abs(found[1].cosine_part) < 0.05 * mean_cosine(x)
    assert outlier_dimensions(np.ones((3, 4))) == []


def test_a_stream_pools_what_it_pools_and_averages_what_it_averages():
    x = cloud(60)
    batches = [x[:25], x[25:26], x[26:26], x[26:]]
    stream = IsotropyStream(6)
    for batch in batches:
        stream.update(batch.astype(np.float64))
    found, whole = stream.result(), isotropy(x)
    assert (found.rows, found.batches, whole.batches) == (60, 2, 1)
    assert found.cosine == pytest.approx(mean_cosine(x))
    assert found.iso_score == pytest.approx(iso_score(x))
    assert found.outliers == whole.outliers == outlier_dimensions(x)
    several = [batch for batch in batches if len(batch) > 1]
    assert found.partition == pytest.approx(np.mean([partition_isotropy(batch) for batch in several]))
    assert found.batch_cosine == pytest.approx(np.mean([mean_cosine(batch) for batch in several]))
    assert whole.partition == partition_isotropy(x) != pytest.approx(found.partition)
    assert whole.to_dict()["cosine"] == whole.batch_cosine == pytest.approx(mean_cosine(x))


def test_a_stream_pools_outliers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 30)) + 15 * (np.arange(30) == 4)
    stream = IsotropyStream(30)
    for batch in np.split(x, 3):
        stream.update(batch)
    (found,) = stream.result().outliers
    (expected,) = outlier_dimensions(x)
    assert found.dimension == expected.dimension == 4
    assert found.deviations == pytest.approx(expected.deviations)
    assert found.cosine_part == pytest.approx(expected.cosine_part)


@pytest.mark.parametrize("offset", [0.02, 0.05, 0.1, 0.2, 0.4])
def test_in_a_cone_of_unit_vectors_both_metrics_carry_one_piece_of_information(offset):
    """I(W) is near exp(−√avgcos), as in all 36 rows that Isotropic DR prints in its table 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 64)) + offset * math.sqrt(64) * np.eye(64)[0]
    x = x @ np.linalg.qr(rng.normal(size=(64, 64)))[0]
    root = math.sqrt(mean_cosine(x))
    assert partition_isotropy(x, signs="positive") == pytest.approx(math.exp(-root), abs=0.03)
    if offset >= 0.1:  # below, the cone is too weak for an eigenvector to point along it
        assert partition_isotropy(x) == pytest.approx(math.exp(-2 * root), abs=0.03)


# I(W) and avgcos as Isotropic DR prints them, tables 1 and 3: three rows of each after the fine-tuned one.
PRINTED = """
.6105 .2229  .9178 .0088  .6362 .1905  .8372 .0267    .6017 .2249  .8912 .0155  .7685 .0636  .8239 .0307
.6142 .2192  .9152 .0089  .7568 .0741  .8566 .0196    .5884 .2477  .8485 .0219  .6771 .1378  .7994 .0408
.5462 .3230  .8943 .0118  .6557 .1649  .8351 .0275    .6273 .2055  .8086 .0365  .7614 .0654  .7862 .0479
.6177 .2191  .7871 .0467  .7454 .0744  .7692 .0573    .6110 .2319  .9005 .0107  .7646 .0692  .8517 .0212
.6064 .2369  .8420 .0240  .7427 .0799  .7999 .0405
"""


def test_what_isotropic_dr_prints_is_what_cones_have_with_the_positive_sign():
    """A cone with the printed avgcos has about the printed I(W), which the paper measured on BERTs."""
    rows = np.array(PRINTED.split(), float).reshape(-1, 2)
    assert len(rows) == 36
    noise = np.random.default_rng(4).normal(size=(2000, 384))
    for printed, cosine in rows:
        # ‖mean‖² is avgcos / (1 − avgcos) of the noise's variance, summed over the components
        cone = noise + math.sqrt(cosine / (1 - cosine))
        assert mean_cosine(cone) == pytest.approx(cosine, abs=0.005)
        assert partition_isotropy(cone, signs="positive") == pytest.approx(printed, abs=0.04)


def test_vectors_of_one_component():
    found = isotropy(np.array([[1.0], [2.0], [-1.0]]))
    assert found.iso_score is None and found.cosine == pytest.approx(-1 / 3)


def test_bad_input():
    with pytest.raises(ShapeError, match="at least two vectors, found 1"):
        partition_isotropy(np.ones((1, 3)))
    with pytest.raises(DataError, match="1 of 2 vectors are not finite"):
        isotropy(np.array([[1.0, np.nan], [0, 1]]))
    with pytest.raises(ShapeError, match="found vectors of one"):
        iso_score(np.ones((3, 1)))
    stream = IsotropyStream(3)
    with pytest.raises(ShapeError, match="rows of 3 components, found shape"):
        stream.update(np.ones((2, 4)))
    stream.update(np.ones((1, 3)))
    with pytest.raises(ShapeError, match="one batch of two vectors"):
        stream.result()

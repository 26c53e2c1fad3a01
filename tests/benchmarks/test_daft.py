"""The columns of the benchmark of DAFT that are not measured but computed."""

import pytest
from benchmarks.papers.daft import savings


def test_savings_are_those_of_the_papers_table_2(golden):
    case = golden("latency_table")
    *found, slowest = savings([*case["inputs"]["ms"], case["inputs"]["base"]])
    assert [one["% less"] for one in found] == pytest.approx(case["expected"]["percent"], abs=case["tol"])
    assert found[0]["times faster"] == pytest.approx(case["expected"]["speedup_L2"], abs=case["tol"])
    assert slowest == {"% less": 0, "times faster": 1}

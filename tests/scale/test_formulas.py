"""The arithmetic: examples computed by hand, and what must hold for any numbers."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ConfigError
from counterpoint.scale import BUSY, FULL, Costs, Machine, Stage, Workload, advice, needs_of
from counterpoint.scale.formulas import (
    cores_for,
    latency_of,
    machines_for,
    query_cost,
    shards_for,
    sum_of_lines,
)

STAGES = (Stage("encode", once=10.0), Stage("call", per_shard=1.0), Stage("scan", per_million=20.0))
COSTS = Costs(
    stored={"documents": 1000.0, "vectors": 3000.0},
    resident=500.0, building=6000.0, stages=STAGES,
    process=1e8, encode=36.0, write=3.6, divide=0.36,
)  # fmt: skip
MACHINE = Machine(16, 64e9)


def test_a_line_is_a_fixed_part_and_one_for_each_word():
    assert sum_of_lines({"a": (50.0, 7.5), "b": (0.0, 2.0)}, 120) == {"a": 950.0, "b": 240.0}


def test_a_query_over_shards_by_hand():
    # 5 million documents in 4 shards: 10 + 4 calls + 5 × 20 of scanning, of which each shard has a quarter
    assert query_cost(STAGES, 5e6, 4) == {"encode": 10.0, "call": 4.0, "scan": 100.0}
    assert latency_of(STAGES, 5e6, 4) == 10 + 4 + 25


def test_shards_by_hand():
    # 5 million: 10 + s + 100 / s ≤ 39 first holds for s = 4 (39.0); 10 + 3 + 33.3 = 46.3
    assert shards_for(STAGES, 5e6, 39.0) == 4
    assert shards_for(STAGES, 5e6, 111.0) == 1
    # no number is enough: 10 + s + 100 / s is smallest, 30, at s = 10
    assert shards_for(STAGES, 5e6, 29.0) == 10
    assert shards_for(STAGES, 5e6, 5.0) == 10


def test_cores_and_machines_by_hand():
    # 60 ms × 100 a second are 6 processors, at 60 % are 10
    assert cores_for(60.0, 100) == 10
    assert cores_for(1.0, 0.1) == 1
    # 100 GB at 80 % of 64 GB are 1.95 machines; 40 cores are 2.5; 5 replicas are on 5
    assert machines_for(100e9, 1, MACHINE, 1) == 2
    assert machines_for(1e9, 40, MACHINE, 1) == 3
    assert machines_for(1e9, 1, MACHINE, 5) == 5


def test_a_whole_plan_by_hand():
    found = needs_of(COSTS, Workload(5e6, 100, 39.0, replicas=2), MACHINE)
    assert found.disk == 20e9 and found.disk_at_build == 2 * 20e9 + 30e9
    assert found.shards == 4 and found.query == {"encode": 10.0, "call": 4.0, "scan": 100.0}
    assert found.cores == 19  # 114 ms × 100 / 0.6
    assert found.processes == 5  # of each of the 4 shards: 19 / 4
    assert found.memory == 2 * 2.5e9 + 4 * 5 * 1e8
    assert found.machines == 2
    assert found.encode_hours == pytest.approx(50) and found.write_hours == pytest.approx(5.5)


def test_a_shard_whose_processes_fill_several_machines_is_in_the_memory_of_each():
    # 114 ms × 600 a second / 0.6 are 114 processors, 29 for a shard, which are on two machines of 16
    found = needs_of(COSTS, Workload(5e6, 600, 39.0), MACHINE)
    assert (found.cores, found.processes) == (114, 29)
    assert found.memory == 2 * 2.5e9 + 4 * 29 * 1e8


def test_an_index_that_is_not_divided_is_not_charged_for_division():
    found = needs_of(COSTS, Workload(1e6, 1, 1000.0), MACHINE)
    assert found.shards == 1 and found.write_hours == pytest.approx(1.0)


sizes = st.floats(1.0, 1e10)
rates = st.floats(0.01, 1e4)


@given(sizes, sizes, rates, rates, st.floats(1.0, 1e4), st.integers(1, 4))
def test_needs_rise_with_documents_and_queries(documents, more, qps, faster, latency, replicas):
    def needs(count, rate):
        return needs_of(COSTS, Workload(count, rate, latency, replicas), MACHINE)

    few, many = sorted((documents, more))
    slow, fast = sorted((qps, faster))
    least, base, most = needs(few, slow), needs(few, fast), needs(many, fast)
    names = "disk disk_at_build cores shards encode_hours write_hours"
    for name in names.split():
        assert getattr(least, name) <= getattr(base, name) <= getattr(most, name), name
    for name in ("memory", "machines", "processes"):  # more shards may need fewer processes for each
        assert getattr(least, name) <= getattr(base, name), name


@given(sizes, rates, st.floats(1.0, 1e4), st.integers(1, 4), st.integers(1, 128), st.floats(4e9, 1e12))
def test_machines_have_the_memory_and_the_processors(documents, qps, latency, replicas, cores, memory):
    found = needs_of(COSTS, Workload(documents, qps, latency, replicas), Machine(cores, memory))
    assert found.machines * FULL * memory >= found.memory * (1 - 1e-9)
    assert found.machines * cores >= found.cores >= found.shards >= 1
    assert found.cores * BUSY >= sum(found.query.values()) / 1000 * qps * (1 - 1e-9)
    assert found.machines >= replicas


@given(sizes, st.floats(1.0, 1e4))
def test_fewer_shards_would_be_too_slow_or_none_are_fast_enough(documents, latency):
    shards = shards_for(STAGES, documents, latency)
    if latency_of(STAGES, documents, shards) <= latency * (1 + 1e-9):
        assert shards == 1 or latency_of(STAGES, documents, shards - 1) > latency * (1 - 1e-9)
    else:
        around = [n for n in (1, shards // 2, shards - 1, shards + 1, 2 * shards) if n >= 1]
        fastest = min(latency_of(STAGES, documents, n) for n in around)
        assert fastest > latency * (1 - 1e-6)
        assert math.isclose(latency_of(STAGES, documents, shards), fastest, rel_tol=0.05) or (
            latency_of(STAGES, documents, shards) <= fastest
        )


def test_numbers_below_one_are_refused():
    for wrong in ((0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, 0.0)):
        with pytest.raises(ConfigError, match="must be above 0"):
            Workload(*wrong)


def test_the_simplest_way_is_advised():
    def way(documents, qps, latency=500.0):
        found = needs_of(COSTS, load := Workload(documents, qps, latency), MACHINE)
        return advice(found, found, load).way

    assert way(1e5, 10) == "one machine"
    assert way(1e8, 1) == "shards on one machine"
    assert way(1e8, 30) == "shards on several machines"
    assert way(1e9, 10) == "another engine"
    assert way(1e5, 10, latency=5.0) == "another engine"


def test_an_end_that_is_too_slow_is_told():
    slower = replace(COSTS, stages=(*STAGES, Stage("slow", once=30.0)))
    load = Workload(1e7, 10, 60.0)
    low, high = (needs_of(costs, load, MACHINE) for costs in (COSTS, slower))
    assert low.latency <= load.latency < high.latency
    told = advice(low, high, load)
    assert told.way != "another engine"
    assert any("over the limit of 60 ms" in reason for reason in told.reasons)
    assert not any("over the limit" in reason for reason in advice(low, low, load).reasons)

"""`counterpoint plan`: what it prints, from measured figures or from an index."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.test_cost import HEAVY, NEVER, modules_of

from counterpoint.index import Index
from counterpoint.scale import shown_bytes, shown_count, shown_hours


def planned(call, *options):
    code, out, err = call("plan", *options, "--json")
    assert code == 0 and err == ""
    return json.loads(out)


def test_it_prints_ranges_assumptions_and_sources(call):
    code, out, err = call("plan", "--documents", "50M", "--qps", 200)
    assert code == 0 and err == ""
    assert out.startswith("50 million passages, 200 queries per second: ")
    assert all(f"\n{name}" in out for name in ("machines ", "cores ", "memory ", "disk ", "shards "))
    assert " to " in out.split("\ncores", 1)[1].splitlines()[0]
    assert "assumed:\n  passages of 120 words; bytes of minilm" in out
    assert out.count("2026-") >= 4  # the dates of the measurements


def test_the_low_end_is_below_the_high_end_and_more_documents_need_more(call):
    few, many = (planned(call, "--documents", size, "--qps", 20) for size in ("200k", "50M"))
    for name in ("disk", "memory", "cores", "shards", "machines", "encode_hours", "write_hours"):
        assert few["low"][name] <= few["high"][name]
        assert few["low"][name] <= many["low"][name] and few["high"][name] <= many["high"][name]
    assert few["advice"]["way"] == "one machine" and many["advice"]["way"] != "one machine"


def test_options_change_what_is_planned(call):
    base = planned(call, "--documents", "10M")
    wide = planned(call, "--documents", "10M", "--codec", "4-bit")
    long = planned(call, "--documents", "10M", "--words", 240)
    plain = planned(call, "--documents", "10M", "--model", "none")
    assert wide["high"]["disk"] > base["high"]["disk"] < long["high"]["disk"]
    assert plain["high"]["encode_hours"] == 0 < base["high"]["encode_hours"]
    twice = planned(call, "--documents", "10M", "--replicas", 2)
    assert twice["high"]["machines"] >= 2 and twice["low"]["memory"] > base["low"]["memory"]
    large = planned(call, "--documents", "10M", "--cores", 64, "--memory", "512GB")
    assert large["high"]["machines"] <= base["high"]["machines"]


def test_an_index_gives_its_own_bytes(lexical, call):
    found = planned(call, "--documents", "1M", "--index", lexical)
    with Index(lexical) as index:
        info = index.info()
    assert found["high"]["disk"] == pytest.approx(info["bytes"] / info["passages"] * 1e6)
    assert found["high"]["encode_hours"] == 0 and "encode the query" not in found["high"]["query"]
    assert found["index"] == str(lexical)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--documents", "many"], "--documents: expected a number such as 200k, 50M or 1.5B, found 'many'"),
        (["--documents", "1M", "--memory", "64"], "--memory: expected an amount"),
        (["--documents", "1M", "--model", "mine"], "--model mine: not measured; measured are none"),
        (["--documents", "1M", "--codec", "int4"], "--codec int4: not measured with minilm"),
        (["--documents", "1M", "--qps", "0"], "numbers must be above 0"),
        (["--documents", "1M", "--index", "x", "--words", "9"], "leave --words, --model and --codec out"),
        (["--documents", "1M", "--index", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_told(options, told, call):
    code, out, err = call("plan", *options)
    assert code == 2 and out == "" and told in err


def test_it_imports_no_model():
    names = modules_of("plan", "--documents", "1M")
    assert not names & {*NEVER, *HEAVY, "torch", "tokenizers", "onnxruntime", "ray"}


PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


def test_the_page_shows_what_is_printed(call):
    (shown,) = re.findall(r"^```console\n\$ (counterpoint plan .*?)\n(.*?)^```", PAGE, re.M | re.S)
    code, out, _ = call(*shown[0].split()[1:])
    assert code == 0 and out == shown[1]


@pytest.mark.parametrize(
    ("qps", "below", "above"), [(10, "250M", "300M"), (200, "100M", "120M")], ids=["10", "200"]
)
def test_the_page_says_where_another_engine_is_advised(qps, below, above, call):
    found = [planned(call, "--documents", size, "--qps", qps)["advice"]["way"] for size in (below, above)]
    assert found == ["shards on several machines", "another engine"]
    said = f"between {below[:-1]} and {above[:-1]} million passages"
    assert said.removesuffix(" passages") in " ".join(PAGE.split())


def test_the_table_of_sizes_is_computed(call):
    """If figures change, copy the rows that pytest shows."""
    (table,) = re.findall(r"^\| passages \|.*?\n\|[-|]+\|\n(.*?)\n\n", PAGE, re.M | re.S)
    assert table.splitlines() == [row_of(size, call) for size in ("100k", "1M", "5M", "10M", "100M", "1B")]


def row_of(size, call):
    found = planned(call, "--documents", size)
    low, high = found["low"], found["high"]
    shown = {"disk": shown_bytes, "disk_at_build": shown_bytes, "memory": shown_bytes}
    shown |= dict.fromkeys(("cores", "machines"), "{:,}".format)
    shown |= {"encode_hours": lambda hours: f"{hours:,.0f}", "write_hours": shown_hours}
    cells = [shown_count(found["documents"])]
    for name, text in shown.items():
        cells.append(" to ".join(dict.fromkeys(str(text(each[name])) for each in (low, high))))
    return f"| {' | '.join([*cells, found['advice']['way']])} |"

"""`fuse` on runs as they come: other documents, other queries, files of one name."""

import json

import pytest
from tests.cli.commands import fails

from counterpoint.search import Run

A = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 1.0}}
B = {"q1": {"b": 30.0, "d": 20.0}, "q3": {"e": 5.0}}


@pytest.fixture
def runs(tmp_path):
    paths = []
    for name, results in (("a.trec", A), ("b.trec", B)):
        Run(results).write(tmp_path / name)
        paths.append(tmp_path / name)
    return paths


def reciprocal(*ranks, weights=(1.0, 1.0)):
    return sum(weight / (60 + rank) for weight, rank in zip(weights, ranks, strict=True) if rank is not None)


def test_ordinary_runs_are_fused_by_reciprocal_ranks(runs, tmp_path, call):
    code, out, err = call("fuse", *runs, "-o", tmp_path / "c")
    assert (code, err) == (0, "") and out == f"{tmp_path / 'c'}: 3 queries from 2 runs by rrf\n"
    fused = Run.read(tmp_path / "c")
    assert fused.scores("q1") == pytest.approx(
        {"b": reciprocal(2, 1), "a": reciprocal(1, None), "d": reciprocal(None, 2), "c": reciprocal(3, None)}
    )
    assert fused.scores("q2") == pytest.approx({"a": 1 / 61})
    assert fused.scores("q3") == pytest.approx({"e": 1 / 61})


def test_weights_and_what_is_missing(runs, tmp_path, call):
    asked = ["--weights", "a.trec=2 b.trec=1", "--missing", "min", "--json"]
    code, out, _ = call("fuse", *runs, "-o", tmp_path / "c", *asked)
    fusion = json.loads(out)["fusion"]
    assert code == 0 and (fusion["method"], fusion["missing"]) == ("rrf", "min")
    found = Run.read(tmp_path / "c").scores("q1")
    assert found["a"] == pytest.approx(reciprocal(1, 2, weights=(2, 1)))


def test_scores_are_added_only_where_all_are_known(runs, tmp_path, call):
    convex = ["fuse", *runs, "-o", tmp_path / "c", "--method", "convex"]
    assert fails(call(*convex), "no score from part 'a.trec'", "(--missing) to 'min' or 'zero'")
    assert not (tmp_path / "c").exists()
    code, _, err = call(*convex, "--missing", "zero", "--normalise", "min-max")
    assert code == 0, err
    # of 3, 2, 1 and of 30, 20, each over its own
    wanted = {"a": 1.0, "b": 1.5, "c": 0.0, "d": 0.0}
    assert Run.read(tmp_path / "c").scores("q1") == pytest.approx(wanted)


def test_runs_of_one_name_are_told_apart_by_their_paths(runs, tmp_path, call):
    (tmp_path / "x").mkdir()
    other = runs[1].rename(tmp_path / "x" / "a.trec")
    code, out, _ = call("fuse", runs[0], other, "-o", tmp_path / "c", "--json")
    assert code == 0 and list(json.loads(out)["fusion"]["weights"]) == [str(runs[0]), str(other)]
    assert call("fuse", runs[0], other, "-o", tmp_path / "c", "--weights", f"{runs[0]}=1,{other}=2")[0] == 0


def test_mistakes_name_the_options(runs, tmp_path, call):
    to = ["-o", tmp_path / "c"]
    assert fails(call("fuse", *runs, *to, "--normalise", "z-score"), "--method rrf", "--normalise", "convex")
    assert fails(call("fuse", *runs, *to, "--weights", "a.trec=1"), "--weights", "no weight for b.trec")
    assert fails(call("fuse", runs[0], runs[0], *to), "named twice")
    assert fails(call("fuse", *runs, "-o", runs[0]), "-o", "is an input")
    assert Run.read(runs[0]) == Run(A)


def test_messages_of_a_search_name_the_settings(lexical, call):
    assert fails(call("search", lexical, "fox", "-w", "hybird"), "unknown workflow 'hybird'; choose one of")
    assert fails(call("search", lexical, "fox", "-w", "dense"), "workflow dense: this index has no such part")
    assert fails(call("search", lexical, "fox", "--fusion", "sum"), "fusion: unknown 'sum'; choose ceiling")
    assert fails(call("search", lexical, "fox", "--feedback", "x"), "feedback: expected WEIGHT")

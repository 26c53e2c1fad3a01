"""Isotropic DR with a fine-tuned model for each source whose vectors are a cone."""

import json
from argparse import Namespace

import benchmarks.papers.isotropy_source_vectors as vectors
import benchmarks.papers.isotropy_sources as sources
import pytest
import torch
from benchmarks.papers.isotropy_source_rows import VARIANTS, chosen, recipe
from benchmarks.papers.isotropy_source_tables import collected, show
from benchmarks.papers.isotropy_source_vectors import Rows, scores

from counterpoint.recipe import check
from counterpoint.transform import Nice


def test_the_best_of_the_cones_is_chosen_or_else_the_narrowest():
    found = {
        "a": {"avgcos": 0.3, "nDCG@10": 0.5},
        "b": {"avgcos": 0.2, "nDCG@10": 0.6},
        "c": {"avgcos": 0.1, "nDCG@10": 0.9},
    }
    assert chosen(found) == "b"
    assert chosen({name: {**of, "avgcos": of["avgcos"] / 2} for name, of in found.items()}) == "a"


def test_every_variant_is_a_recipe():
    for kind, variants in VARIANTS.items():
        for variant in variants:
            made = recipe(kind, variant, 3, 2)
            assert check(made) == [] and made.seed == 3


def rows_of(lengths, seed):
    draw = torch.Generator().manual_seed(seed)
    return Rows(torch.randn(sum(lengths), 6, generator=draw), torch.tensor(lengths))


def test_scores_and_means_are_those_of_loops():
    queries, documents = rows_of([2, 1, 3] * 4, 0), rows_of([4, 1, 2, 7], 1)
    found, means = scores(queries, documents), documents.means()
    asked = queries.values.split(queries.lengths.tolist())
    for at, text in enumerate(documents.values.split(documents.lengths.tolist())):
        assert torch.allclose(means.values[at], text.mean(0))
        expected = torch.stack([(query @ text.T).amax(1).sum() for query in asked])
        assert torch.allclose(found[:, at], expected, atol=1e-5)
    taken = documents.take([3, 0])
    assert taken.lengths.tolist() == [7, 4] and torch.equal(taken.values[7:], documents.values[:4])


def a_file(source, gain):
    """What a run has written of two seeds: without a map, and with whitening, also of the control."""
    asked = {"squad11-dev": ["a", "b", "c"], "nq-qed": ["d", "e", "f"], "med": ["g", "h", "i"]}

    def row(cone, seed, name, value):
        ndcg = [value, value + 0.01 * seed, value + 0.1]
        targets = {t: {"nDCG@10": ndcg, "I(W)": 0.5, "avgcos": 0.3} for t in asked}
        return {"kind": "ColBERT", "cone": cone, "seed": seed, "row": name, "targets": targets}

    rows = []
    for seed in (0, 1):
        rows += [row(True, seed, "none", 0.5), row(True, seed, "token, whitening", 0.5 + gain + 0.01 * seed)]
        rows += [row(False, seed, "none", 0.6), row(False, seed, "token, whitening", 0.6)]
    variants = {"ColBERT": {"pairwise": {"avgcos": 0.25, "nDCG@10": 0.5}}}
    return {
        "source": source, "queries": asked, "variants": variants, "chosen": {"ColBERT": "pairwise"},
        "rows": rows, "errors": [],
    }  # fmt: skip


def test_tables_compare_maps_in_and_out_of_distribution_and_with_the_control(capsys):
    files = [a_file("squad11-dev", 0.1), a_file("nq-qed", 0.2)]
    found, _ = collected(files, "ColBERT")
    assert set(found["in: none", 0]) == {f"squad11-dev/{q}" for q in "abc"} | {f"nq-qed/{q}" for q in "def"}
    assert found["out: token, whitening", 0]["med/g"] == pytest.approx(0.65)  # the mean of both sources
    assert set(found["out, sources: none", 1]) == set(found["in: none", 1])
    show(files)
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("| squad11-dev, ColBERT, pairwise | 0.250 | 0.500 | chosen |") for line in lines
    )
    assert any(line.startswith("| in: token, whitening − in: none | 0.155 |") for line in lines)
    gain = "| in: gain of token, whitening − in: gain of token, whitening, without a cone | 0.155 |"
    assert any(line.startswith(gain) for line in lines)
    assert any(line.startswith("| out, sources: token, whitening − in: none | 0.155 |") for line in lines)
    assert "| nq-qed → med | 0.535 | +0.205 |" in lines


def test_a_seed_that_a_source_lacks_is_left_out(capsys):
    first, second = a_file("squad11-dev", 0.1), a_file("nq-qed", 0.2)
    second["rows"] = [row for row in second["rows"] if row["seed"] == 0]
    assert {seed for _, seed in collected([first, second], "ColBERT")[0]} == {0}
    show([first, second])
    assert "seed 1" not in capsys.readouterr().out


def a_collection(folder, splits):
    """Thirty documents, each with a question in every split."""
    nouns = ("whale", "train", "market", "violin", "harbour", "engine", "garden", "bridge", "clock", "lamp")
    things = [f"{colour} {noun}" for colour in ("red", "blue", "green") for noun in nouns]
    (folder / "qrels").mkdir(parents=True)
    texts = [
        f"The {thing} number {at} is older than the town, and so is its owner."
        for at, thing in enumerate(things)
    ]
    lines = [json.dumps({"_id": str(at), "text": text}) for at, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    asked = [(f"{s}{at}", at, f"how old is the {t}") for s in splits for at, t in enumerate(things)]
    (folder / "queries.jsonl").write_text("\n".join(json.dumps({"_id": q, "text": t}) for q, _, t in asked))
    for split in splits:
        judged = [f"{q}\t{at}\t1" for q, at, _ in asked if q == f"{split}{at}"]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))


@pytest.mark.minilm
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Whitening|Glow|Nice")
def test_a_source_is_trained_chosen_mapped_and_measured(tmp_path, monkeypatch):
    for name, splits in (("a", ("train", "test")), ("b", ("train", "dev")), ("c", ("test",))):
        a_collection(tmp_path / name, splits)
    small = {"SOURCES": ("a", "b"), "OTHERS": ("c",), "SEEDS": (0,), "STEPS": {"Glow": 2, "NICE": 2}}
    small |= {"VARIANTS": {"RepBERT": ("margin",)}, "TOKENS": 600, "QUERIES": 5}
    for name, value in small.items():
        monkeypatch.setattr(sources, name, value)
    monkeypatch.setattr(vectors, "HELD_OUT", 8)
    monkeypatch.setattr(
        "benchmarks.papers.isotropy_maps.Nice",
        lambda dim, fitting: Nice(dim, layers=1, width=8, fitting=fitting),
    )
    sources.run(
        Namespace(source="b", data=tmp_path, work=tmp_path / "work", json=tmp_path / "b.json", steps=2)
    )
    found = json.loads((tmp_path / "b.json").read_text())
    assert found["errors"] == [] and found["chosen"] == {"RepBERT": "margin"}
    assert found["variants"]["RepBERT"]["margin"]["avgcos"] > 0.2
    measured = [(row["cone"], row["row"]) for row in found["rows"]]
    closed = [f"{level}, {method}" for method in sources.CLOSED for level in ("token", "sequence")]
    flows = [[(True, f"{level}, {flow}") for level in ("token", "sequence")] for flow in ("Glow", "NICE")]
    whole = [[(cone, row) for row in ("none", *closed)] for cone in (True, False)]
    assert measured == [*whole[0], *flows[0], *whole[1], *flows[1]]
    plain, white = found["rows"][0]["targets"]["b"], found["rows"][2]["targets"]["b"]
    assert len(plain["nDCG@10"]) == 30 and plain["avgcos"] > 0.4 > white["avgcos"]

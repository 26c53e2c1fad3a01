"""The benchmark that chooses how many candidates the words score: its values are those of such a search."""

import json
import sys

import pytest
from benchmarks.default import refined
from benchmarks.default.refined import NUMBERS, chosen, main, share

import counterpoint as cp


def small(folder):
    """A collection of five documents with two training queries."""
    (folder / "qrels").mkdir(parents=True)
    texts = ["The whale is large.", "An oak grows old.", "The sea is salt.", "Ships of oak sail.", ""]
    records = {"corpus": dict(zip("abcde", texts, strict=True)), "queries": {"q": "old trees", "r": "salt"}}
    for kind, by_id in records.items():
        lines = [json.dumps({"_id": name, "text": text}) for name, text in by_id.items()]
        (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    lines = ["query-id\tcorpus-id\tscore", "q\tb\t1", "r\tc\t1"]
    (folder / "qrels" / "train.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.minilm
def test_values_are_those_of_a_search(tmp_path, monkeypatch, capsys):
    source = small(tmp_path / "small")
    command = ["refined.py", source, "--work", tmp_path / "work", "--json", tmp_path / "found.json"]
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    main()
    (found,) = json.loads((tmp_path / "found.json").read_text()).values()
    assert list(found) == ["all", *map(str, NUMBERS)]
    assert all(
        values["kept"] == 1 and values["scored"] <= 5 for values in found.values()
    )  # of five documents
    with cp.open(tmp_path / "work" / "small") as notes:
        wanted = notes.evaluate(source, split="train", measures="nDCG@10").measures["nDCG@10"]
    assert found["all"]["nDCG@10"] == pytest.approx(wanted)
    assert "chosen: 50" in capsys.readouterr().out
    monkeypatch.setattr(refined, "DEPTH", 1)  # of which twice as many are scored, at least
    monkeypatch.setattr(refined, "NUMBERS", (1, 3))
    main()
    (found,) = json.loads((tmp_path / "found.json").read_text()).values()
    assert [found[number]["scored"] for number in ("1", "3", "all")] == [2, 3, found["all"]["scored"]]
    assert found["all"]["scored"] > 3


def test_the_share_is_of_the_complete_searchs_documents():
    assert share({"a", "b"}, {"b", "c"}) == 0.5 and share(set(), {"a"}) == 1


def values_of(**kept):
    return {"all": {"nDCG@10": 0.5}} | {
        str(number): {"kept": kept.get(f"of_{number}", 1.0), "nDCG@10": 0.5} for number in NUMBERS
    }


def test_the_rule_holds_on_every_collection():
    one, other = values_of(of_50=0.99), values_of(of_64=0.997, of_50=0.9)
    assert chosen({"one": one}) == "64" and chosen({"one": one, "other": other}) == "100"
    one["100"]["nDCG@10"] = 0.4994
    assert chosen({"one": one, "other": other}) == "128"
    assert chosen({"none": {**one, **{str(n): {"kept": 0.9, "nDCG@10": 0.5} for n in NUMBERS}}}) == "all"

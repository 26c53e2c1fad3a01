"""`compare` with what runs answer together, halves, wins and lengths: by hand, by loops on the real runs."""

import csv
import gzip
import json
from itertools import permutations

import numpy as np
import pytest
from tests.cli.commands import fails

DOCUMENTS = {
    "a": "the answer is Paris",
    "b": " ".join(["word"] * 50),
    "c": "Rome it was",
    "d": " ".join(["word"] * 90),
}
QRELS = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"d": 1, "a": 0}, "q4": {"b": 1, "d": 1}}
RUNS = {
    "bm25": {"q1": ["a", "b"], "q2": ["a", "b"], "q3": ["a", "b"]},
    "dense": {"q1": ["b", "a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["c", "a"]},
    "none": {"q1": ["c"]},
}


@pytest.fixture
def world(tmp_path):
    """A collection of four queries, none of whose runs is complete."""
    (tmp_path / "c" / "qrels").mkdir(parents=True)
    rows = [{"_id": name, "text": text} for name, text in DOCUMENTS.items()]
    (tmp_path / "c" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"_id": name, "text": "?"} for name in QRELS]
    (tmp_path / "c" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{q}\t{d}\t{grade}\n" for q, judged in QRELS.items() for d, grade in judged.items()]
    (tmp_path / "c" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    for name, found in RUNS.items():
        lines = [f"{q} Q0 {d} 1 {-at} t\n" for q, ids in found.items() for at, d in enumerate(ids)]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "answers.tsv").write_text("q1\tPARIS\tberlin\nq2\trome\nq3\tword word\nother\tx\n")
    return tmp_path


def table(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_by_judgements(call, world):
    """By hand: in the first two BM25 answers q1 and q2, dense q1 to q3, and q4 nobody."""
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec"]
    code, out, err = call(
        *base,
        "--complementarity",
        "1,2",
        "--venn",
        world / "venn.pdf",
        "--answered",
        world / "a.csv",
        "--json",
    )
    assert code == 0, err
    (found,) = json.loads(out)["complementarity"]
    assert (found["collection"], found["relevance"]) == ("c", "judgements")
    first, second = found["cutoffs"]
    assert (first["k"], first["answered"]["sizes"]) == (1, {"bm25": 1, "dense": 1})
    assert first["answered"]["pairs"][1]["roc"] == 1 and first["answered"]["failure"] == 0.5
    answered = second["answered"]
    assert (answered["universe"], answered["union"], answered["failure"]) == (4, 3, 0.25)
    assert answered["pairs"][1] == {
        "first": "dense", "second": "bm25", "first_without_second": 1, "both": 2, "roc": 1 / 3,
    }  # fmt: skip
    assert second["per_query"]["q4"] == {"relevant": 2, "bm25": 0, "dense": 0}
    assert (world / "venn.pdf").read_bytes().startswith(b"%PDF")
    rows = {(row["k"], row["query"]): row for row in table(world / "a.csv")}
    assert (
        len(rows) == 8 and rows["2", "q3"]["answered by"] == "dense" and rows["2", "q4"]["answered by"] == ""
    )
    assert rows["2", "q1"]["RoC dense vs bm25"] == "0.0" and rows["2", "q4"]["RoC dense vs bm25"] == ""
    code, out, _ = call(*base, "--complementarity", 2, "--format", "markdown")
    assert code == 0 and "| dense vs bm25 | 3 | 1 | 2 | 3 | 1 | 0.3333 | 0.3333 |" in out


def test_condensed_lists_are_those_of_both_tables(call, world):
    """Without what nobody judged, dense is q1: a; q2: b; q3: d; q4 nothing. So R@1 is 3/4, and not 1/4."""
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec"]
    base += ["--measures", "R@1", "--complementarity", 1, "--json"]
    for more, dense in ([], 1 / 4), (["--condensed"], 3 / 4):
        code, out, err = call(*base, *more)
        assert code == 0, err
        data = json.loads(out)
        (cutoff,) = data["complementarity"][0]["cutoffs"]
        assert data["complementarity"][0]["condensed"] is bool(more)
        said = " ".join(call(*base[:-1], *more)[1].split())
        assert said.count("Unjudged documents were removed first") == 2 * bool(more)
        assert cutoff["recall"] == pytest.approx(data["comparisons"][0]["means"])
        assert cutoff["recall"]["dense"] == pytest.approx(dense)


def test_condensed_counts_say_that_they_are(call, world):
    """By hand, first documents: whole lists answer q1 (bm25), q2 (dense); condensed q1 and q1, q2, q3."""
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec"]
    base += ["--measures", "R@1", "--complementarity", 1, "--venn", world / "v.svg"]
    code, out, err = call(*base)
    assert code == 0, err
    assert "Complementarity on c, first 1 documents, 4 queries" in out and "judged" not in out
    assert "dense vs bm25    1        1        0        2         2  1.0000" in out
    code, out, err = call(*base, "--condensed")
    assert code == 0, err
    assert "Queries answered on c, first 1 judged documents" in out
    assert "Complementarity on c, first 1 judged documents, 4 queries" in out
    assert out.count("Unjudged documents were removed first") == 2
    assert "dense vs bm25    3        1        2        3         1  0.3333" in out
    for more in ([], ["--condensed"]):
        (found,) = json.loads(call(*base, *more, "--json")[1])["complementarity"]
        assert found["condensed"] == bool(more)


@pytest.mark.parametrize(("k", "cut"), [(1, False), (2, True)])
def test_condensed_lists_may_have_been_cut_too_early(call, world, k, cut):
    """No list is longer than two, so nobody knows which judged documents would follow."""
    base = ["compare", world / "c", world / "bm25.trec", world / "dense.trec", "--measures", "R@1"]
    err = call(*base, "--complementarity", k, "--condensed")[2]
    assert ("no query has more than 2 documents" in err) == cut
    assert "no query has more" not in call(*base, "--complementarity", k)[2]


def test_a_run_that_answers_nothing(call, world):
    base = ["compare", world / "c", *(world / f"{name}.trec" for name in RUNS), "--complementarity", "2"]
    code, out, _ = call(*base, "--baseline", "none")
    (row,) = (line.split() for line in out.splitlines() if line.startswith("  none vs bm25"))
    assert code == 0 and row == ["none", "vs", "bm25", "0", "0", "0", "2", "2", "–", "–"]
    assert "dense vs bm25" not in out
    pairs = json.loads(call(*base, "--json", "--venn", world / "v.png")[1])["complementarity"][0]["cutoffs"]
    assert [pair["roc"] for pair in pairs[0]["answered"]["pairs"]] == [0, 1, 1 / 3, 1, None, None]


def test_by_answers(call, world):
    """q1's answer is in a, q3's in b and d, q2's in c, which nobody finds; q4 has none."""
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec"]
    code, out, err = call(*base, "--complementarity", "1,2", "--answers", world / "answers.tsv", "--json")
    assert code == 0 and "1 judged queries" in err and "have no answers" in err
    (found,) = json.loads(out)["complementarity"]
    assert found["relevance"] == "answers"
    first, second = (cutoff["answered"] for cutoff in found["cutoffs"])
    assert (first["sizes"], first["universe"]) == ({"bm25": 1, "dense": 0}, 3)
    assert (second["sizes"], second["failure"]) == ({"bm25": 2, "dense": 2}, pytest.approx(1 / 3))
    hits = {c["measure"]: c["means"] for c in json.loads(out)["comparisons"]}
    assert hits["R@1 by answers"] == {"bm25": pytest.approx(1 / 3), "dense": 0}
    assert hits["R@2 by answers"] == {"bm25": pytest.approx(2 / 3), "dense": pytest.approx(2 / 3)}
    out = call(*base, "--complementarity", "2", "--answers", world / "answers.tsv")[1]
    assert "with an answer among its first 2" in out and "R@2 by answers" in out


def test_a_cutoff_by_answers_does_not_depend_on_the_others(call, world):
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec"]
    base += ["--answers", world / "answers.tsv", "--json", "--complementarity"]
    alone, (together, _) = (
        json.loads(call(*base, k)[1])["complementarity"][0]["cutoffs"] for k in ("1", "1,2")
    )
    assert alone == [together] and "recall" not in together and "union_recall" not in together


def test_nobody_answers_anything(call, world):
    (world / "other.trec").write_text("q1 Q0 c 1 1.0 t\n")
    base = ["compare", world / "c", world / "none.trec", world / "other.trec", "--complementarity", 10]
    code, out, err = call(*base, "--venn", world / "v.svg", "--answered", world / "a.csv")
    assert code == 0, err
    assert "4 of 4 queries" in out and (world / "v.svg").is_file() and len(table(world / "a.csv")) == 4


def test_a_run_without_a_line_found_nothing(call, world):
    (world / "nothing.trec").write_text("")
    base = ["compare", world / "c", world / "bm25.trec", world / "nothing.trec", "--measures", "RR", "--json"]
    code, out, err = call(*base)
    assert code == 0, err
    assert json.loads(out)["comparisons"][0]["means"]["nothing"] == 0
    assert fails(call("compare", world / "nothing.trec", *base[2:]), "before its runs")


def test_lengths_are_those_of_documents_that_are_relevant_enough(call, world):
    qrels = world / "c" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("q4\td\t1", "q4\td\t2"))
    base = ["compare", world / "c", world / "bm25.trec", world / "dense.trec", "--lengths", 40, "--json"]
    for grade, part in ((1, "above 40 to 80"), (2, "above 80 to 120")):  # of 50 and 90 words, or 90 alone
        (parts,) = json.loads(call(*base, "--relevant-from", grade)[1])["parts"]
        assert "q4" in {p["part"]: p["queries"] for p in parts["lengths"]["parts"]}[part]


def test_halves_wins_and_lengths(call, world):
    """BM25 has RR 1, 1/2, 0, 0; dense 1/2, 1, 1/2, 0. Relevant documents have 4, 50, 90 and 70 words."""
    base = ["compare", f"c={world / 'c'}", world / "bm25.trec", world / "dense.trec", "--baseline", "bm25"]
    base += ["--measures", "R@2", "--halves", "RR@10", "--wins", "RR@10", "--lengths", 40]
    plots = ["--wins-plot", world / "wins.svg", "--lengths-plot", world / "lengths.svg"]
    code, out, err = call(*base, *plots, "--json")
    assert code == 0, err
    (parts,) = json.loads(out)["parts"]
    assert [(part["part"], part["queries"]) for part in parts["halves"]["parts"]] == [
        ("easy", ["q1", "q2"]), ("hard", ["q3", "q4"]),
    ]  # fmt: skip
    assert [part["means"]["R@2"] for part in parts["halves"]["parts"]] == [
        {"bm25": 1, "dense": 1}, {"bm25": 0, "dense": 0.5},
    ]  # fmt: skip
    assert parts["wins"]["runs"]["dense"] == {
        "all": {"wins": 2, "ties": 1, "losses": 1},
        "easy": {"wins": 1, "ties": 0, "losses": 1},
        "hard": {"wins": 1, "ties": 1, "losses": 0},
    }
    assert [(part["part"], part["queries"]) for part in parts["lengths"]["parts"]] == [
        ("to 40", ["q1"]), ("above 40 to 80", ["q2", "q4"]), ("above 80 to 120", ["q3"]),
    ]  # fmt: skip
    assert (world / "wins.svg").is_file() and (world / "lengths.svg").is_file()
    code, out, _ = call(*base)
    assert "R@2 on c by RR@10 of bm25" in out and "easy from 0.5000, hard to 0.0000" in out
    (row,) = (line.split() for line in out.splitlines() if line.startswith("  above 40 to 80"))
    assert code == 0 and row[-3:] == ["2", "0.5000", "0.5000"]
    code, out, _ = call(*base[:-2], "--relevant-from", 1, "--format", "latex")
    assert code == 0 and r"dense & hard & 2 & 50.0\% & 50.0\% & 0.0\%" in out


def test_an_adversarial_collection_stands_beside_the_original(call, world):
    """Figure 5: the same systems on two collections, in one table."""
    base = [world / "bm25.trec", world / "dense.trec"]
    code, out, _ = call(
        "compare", f"original={world / 'c'}", *base, f"adversarial={world / 'c'}", *base[:1],
        f"dense={world / 'none.trec'}", "--measures", "RR@10", "--complementarity", 2,
        "--venn", world / "v.svg", "--wins", "RR@10", "--baseline", "bm25", "--wins-plot", world / "w.svg",
    )  # fmt: skip
    assert code == 0 and "original RR@10  adversarial RR@10" in out
    assert "Complementarity on adversarial" in out and "RR@10 on original against bm25" in out


def test_what_is_refused(call, world):
    bm25, dense = world / "bm25.trec", world / "dense.trec"
    base = ["compare", world / "c", bm25, dense]
    few = ["compare", world / "c", bm25, "--complementarity", "10"]
    assert fails(call(*few), "at least two systems, found bm25")
    assert fails(call(*base, "--venn", world / "v.svg"), "--venn needs --complementarity")
    assert fails(call(*base, "--answers", world / "answers.tsv"), "--answers needs --complementarity")
    assert fails(call(*base, "--answered", world / "a.csv"), "--answered needs --complementarity")
    assert fails(call(*base, "--complementarity", "ten"), "--complementarity: expected whole numbers")
    assert fails(call(*base, "--complementarity", 1, "--venn", "v.gif"), "'v.gif'")
    assert fails(call(*base, "--halves", "RR@10"), "--halves needs a baseline")
    assert fails(call(*base, "--wins", "RR@10"), "--wins needs a baseline")
    assert fails(call(*base, "--lengths-plot", world / "l.svg"), "--lengths-plot needs --lengths")
    assert fails(call(*base, "--wins-plot", world / "w.svg"), "--wins-plot needs --wins")
    assert fails(call(*base, "--lengths", 40, "--lengths-plot", "l.gif"), "'l.gif'")
    assert fails(call(*base, "--baseline", "bm25", "--halves", "RR@ten"), "RR@ten")
    bare = ["compare", world / "c" / "qrels" / "test.tsv", bm25, dense]
    assert fails(call(*bare, "--lengths", 40), "holds judgements only")
    answers = ["--complementarity", 1, "--answers", world / "answers.tsv"]
    assert fails(call(*bare, *answers), "--answers: ", "holds judgements only")
    assert fails(call(*base, *answers, "--condensed"), "--condensed", "--answers", "choose one")
    (world / "answers.tsv").write_text("other\tx\n")
    assert fails(call(*base, *answers), "no answers for the judged queries")
    twice = ["compare", world / "c", f"a={bm25}", f"a={dense}", f"b={dense}", "--complementarity", 1]
    assert fails(call(*twice), "a on c has 2 runs", "a name of its own")


def by_hand(path):
    """Documents of each query in trec_eval's order: falling score in single precision, falling id."""
    rows = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        query, _, document, _, score, _ = line.split()
        rows.setdefault(query, []).append((float(np.float32(score)), document))
    return {query: [document for _, document in sorted(found, reverse=True)] for query, found in rows.items()}


@pytest.mark.shared
@pytest.mark.parametrize("year", ["19", "20"])
def test_the_real_runs_agree_with_a_count(call, shared, tmp_path, year):
    """BM25, BM25 with RM3 and TAS-B on TREC DL: every count by loops over the files' lines."""
    folder = shared / "data" / "runs"
    paths = {name: folder / f"{name}.dl{year}.trec.gz" for name in ("bm25", "bm25-rm3", "tas-b")}
    judgements = folder / f"qrels.dl{year}-passage.txt"
    code, out, err = call(
        "compare", judgements, *(f"{name}={path}" for name, path in paths.items()), "--relevant-from", 2,
        "--complementarity", "10,100", "--venn", tmp_path / "venn.svg", "--json",
    )  # fmt: skip
    assert code == 0 and (tmp_path / "venn.svg").is_file(), err
    relevant = {}
    for line in judgements.read_text().splitlines():
        query, _, document, grade = line.split()
        if int(grade) >= 2:
            relevant.setdefault(query, set()).add(document)
    runs = {name: by_hand(path) for name, path in paths.items()}
    for cutoff in json.loads(out)["complementarity"][0]["cutoffs"]:
        answers, documents = {name: set() for name in runs}, {name: set() for name in runs}
        for name, run in runs.items():
            for query, wanted in relevant.items():
                for document in run.get(query, [])[: cutoff["k"]]:
                    if document in wanted:
                        answers[name].add(query)
                        documents[name].add((query, document))
                count = len([pair for pair in documents[name] if pair[0] == query])
                assert cutoff["per_query"][query][name] == count
        for kind, found, universe in (
            ("answered", answers, len(relevant)),
            ("relevant", documents, sum(map(len, relevant.values()))),
        ):
            told = cutoff[kind]
            union = answers_of_any(found)
            assert told["sizes"] == {name: len(members) for name, members in found.items()}
            assert (told["universe"], told["union"]) == (universe, len(union))
            assert told["failure"] == pytest.approx(1 - len(union) / universe)
            for pair, (d, s) in zip(told["pairs"], permutations(runs, 2), strict=True):
                alone = [member for member in found[d] if member not in found[s]]
                both = [member for member in found[d] if member in found[s]]
                assert (pair["first"], pair["second"]) == (d, s)
                assert (pair["first_without_second"], pair["both"]) == (len(alone), len(both))
                assert pair["roc"] == pytest.approx(len(alone) / len(found[d]))


def answers_of_any(found):
    union = set()
    for members in found.values():
        for member in members:
            union.add(member)
    return union


def test_one_query_is_counted_without_a_test(call, world):
    """One query has counts, wins and a diagram; only what needs a test says that it needs more queries."""
    (world / "one.qrels").write_text("q3 0 d 1\n")
    code, out, err = call(
        "compare", world / "one.qrels", world / "bm25.trec", world / "dense.trec",
        "--complementarity", "2", "--venn", world / "venn.svg", "--answered", world / "a.csv",
        "--baseline", "bm25", "--wins", "RR@10", "--halves", "RR@10", "--per-query", world / "q.csv",
    )  # fmt: skip
    assert code == 0, err
    assert "Not tested: a test, an interval and an effect need 3 queries or more, and there is 1." in out
    assert "dense − bm25" in out and "1/0/0" in out and "nan" not in out
    assert "dense vs bm25    1        1        0        1         0  1.0000" in out
    assert "dense    all        1            100.0%" in out
    assert (world / "venn.svg").exists() and len(table(world / "q.csv")) == 1
    assert [row["query"] for row in table(world / "a.csv")] == ["q3"]
    runs = (world / "bm25.trec", world / "dense.trec")
    code, out, _ = call("compare", world / "one.qrels", *runs, "--complementarity", 2, "--json")
    (found,) = json.loads(out)["comparisons"]
    assert code == 0 and found["untested"].endswith("need 3 queries or more, and there is 1")
    assert found["pairs"][0]["outcome"]["p_value"] is None and found["pairs"][0]["counts"]["wins"] == 1
    fails(call("compare", world / "one.qrels", *runs, "--forest", world / "f.svg"), "two collections or more")


def test_counts_of_one_query_need_no_test(call, world):
    """Nothing can be tested over one query; what is answered can still be counted."""
    (world / "one.txt").write_text("q1 0 a 1\n")
    base = ["compare", f"one={world / 'one.txt'}", world / "bm25.trec", world / "dense.trec"]
    code, out, err = call(*base, "--complementarity", 2)
    assert code == 0, err
    assert "Complementarity on one, first 2 documents, 1 queries" in " ".join(out.split())

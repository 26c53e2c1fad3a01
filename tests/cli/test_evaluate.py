"""`evaluate` beyond the means, and `folds`: judgement holes, cross-validation, slices, tables."""

import csv
import json
import math
import os

import pytest
from tests.cli.commands import fails
from tests.cli.conftest import DOCUMENTS

from counterpoint.cli.outputs import check_outputs
from counterpoint.cli.tables import csv_table, text_table
from counterpoint.measure import read_folds
from counterpoint.search import Run

QUERIES = {"q1": "=SUM(A1)", "q2": "two words", "q3": "a question of six words here", "-4": "four"}
QRELS = {"q1": {"a": 2}, "q2": {"a": 1, "b": 2}, "q3": {"b": 1, "c": 0}, "-4": {"c": 3}}
RUNS = {
    "one": {"q1": "a b", "q2": "x b a", "q3": "x y b", "-4": "c"},
    "two": {"q1": "b a", "q2": "b a", "q3": "b", "-4": "b a c"},
}


@pytest.fixture
def files(tmp_path):
    """A collection with metadata, two runs, and the judgements alone."""
    folder = tmp_path / "graded"
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": "a", "title": "T", "text": "one two", "lang": "en"},
        {"_id": "b", "text": "one two three four five", "lang": "de"},
        {"_id": "c", "text": "one"},
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    kinds = {"q1": "sum", "q2": "words", "q3": "words"}
    queries = [{"_id": q, "text": text, "metadata": {"kind": kinds.get(q)}} for q, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    rows = [f"{q}\t{d}\t{grade}\n" for q, grades in QRELS.items() for d, grade in grades.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    for name, run in RUNS.items():
        lines = [
            f"{q} Q0 {d} 1 {-rank} x\n" for q, found in run.items() for rank, d in enumerate(found.split())
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    return folder, tmp_path / "one.trec", tmp_path / "two.trec", folder / "qrels" / "test.tsv"


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_condensed_and_binarised(files, call):
    folder, one, _, _ = files
    names = ("--measures", "RR@10 nDCG@10 P@1", "--json")
    code, out, _ = call("evaluate", folder, "--run", one, *names)
    assert code == 0 and json.loads(out)["measures"]["RR@10"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1) / 4)
    code, out, err = call("evaluate", folder, "--run", one, *names, "--condensed", "--relevant-from", 2)
    measures = json.loads(out)["measures"]
    assert list(measures) == [
        "RR(rel=2,judged_only=True)@10",
        "nDCG(judged_only=True)@10",
        "P(rel=2,judged_only=True)@1",
    ]
    # condensed: q1 a; q2 b a; q3 b, of grade 1 only; -4 c
    assert measures["RR(rel=2,judged_only=True)@10"] == 3 / 4
    assert measures["nDCG(judged_only=True)@10"] == 1 and measures["P(rel=2,judged_only=True)@1"] == 3 / 4
    assert "no query has more than 3 documents" in err
    assert fails(call("evaluate", folder, "--run", one, "--relevant-from", "0"), "relevant-from")
    twice = ("--measures", "AP AP(rel=2)", "--relevant-from", 2, "--slice", "query-length", "--json")
    code, out, _ = call("evaluate", folder, "--run", one, *twice, "--slice-table", folder / "slices.csv")
    assert code == 0 and list(json.loads(out)["measures"]) == ["AP(rel=2)"]
    assert {len(row) for row in read(folder / "slices.csv")} == {5}


def test_an_index_is_searched_deeply_for_condensed_measures(collection, lexical, call):
    arguments = ("evaluate", collection, "--index", lexical, "-w", "lexical", "--json", "--measures", "P@2")
    assert json.loads(call(*arguments)[1])["k"] == 2
    assert json.loads(call(*arguments, "--condensed")[1])["k"] == 1000
    assert json.loads(call(*arguments, "--condensed", "-k", "50")[1])["k"] == 50


def test_a_depth_below_a_cutoff_is_noted(collection, lexical, call):
    arguments = ("evaluate", collection, "--index", lexical, "-w", "lexical", "--measures", "P@2 R@100 AP")
    noted = "-k 10 retrieves fewer documents than R@100 counts; the rest count as not found"
    assert noted in call(*arguments, "-k", 10)[2]
    assert "retrieves fewer" not in call(*arguments, "-k", 100)[2] + call(*arguments)[2]


def test_judgements_that_measure_nothing_are_noted(files, call, tmp_path):
    folder, one, _, qrels = files
    arguments = ("evaluate", folder, "--run", one, "--measures", "P@1 nDCG@10")
    assert (
        "no document has a grade of 4 or more (the highest is 3)" in call(*arguments, "--relevant-from", 4)[2]
    )
    only = "every judged document has a grade of {} or more, so condensed lists hold relevant documents only"
    assert not set(call(*arguments, "--relevant-from", 3)[2].split()) & {"grade"}
    assert "every judged document" not in call(*arguments, "--condensed")[2]  # c has grade 0 for q3
    qrels.write_text(qrels.read_text().replace("q3\tc\t0\n", ""))
    assert only.format(1) in call(*arguments, "--condensed")[2]
    assert "every judged document" not in call(*arguments)[2]


def test_a_run_of_other_documents_is_noted(files, collection, lexical, call):
    folder, one, *_ = files
    rows = [{"_id": query, "text": "trains"} for query in QUERIES]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    noted = "none of the documents found is judged for any query; were the documents and the judgements made"
    code, out, err = call("evaluate", folder, "--index", lexical, "-w", "lexical", "--json")
    assert code == 0 and json.loads(out)["measures"]["nDCG@10"] == 0 and noted in err
    assert noted not in call("evaluate", folder, "--run", one)[2]
    assert noted not in call("evaluate", collection, "--index", lexical, "-w", "lexical")[2]


def test_folds_are_written_and_choose_between_runs(files, call, tmp_path):
    folder, one, two, qrels = files
    path = tmp_path / "folds.json"
    code, out, _ = call("folds", folder, "-o", path, "--folds", 4, "--seed", 3, "--json")
    assert code == 0 and json.loads(out)["tested"] == [1, 1, 1, 1] and json.loads(out)["queries"] == 4
    runs = ("--run", one, "--run", two, "--measures", "RR P@1", "--folds", path)
    code, out, _ = call("evaluate", qrels, *runs, "--json")
    first, second, crossed = json.loads(out)["runs"]
    assert code == 0 and crossed["run"] == "cross-validated" and crossed["chosen_by"] == "RR"
    values = {  # reciprocal ranks, from the runs above
        str(one): {"q1": 1, "q2": 1 / 2, "q3": 1 / 3, "-4": 1},
        str(two): {"q1": 1 / 2, "q2": 1, "q3": 1, "-4": 1 / 3},
    }
    total = 0
    for fold, chosen in zip(read_folds(path), crossed["chosen"], strict=True):
        others = set(QUERIES) - set(fold.test)
        best = max(values, key=lambda run, others=others: round(sum(values[run][q] for q in others), 9))
        assert chosen == best
        total += values[best][fold.test[0]]
    assert crossed["measures"]["RR"] == pytest.approx(total / 4) and crossed["queries"] == 4
    code, out, _ = call("evaluate", qrels, *runs, "--choose-on", "validation")
    assert code == 0 and "cross-validated" in out and "chosen by RR on validation: " in out
    assert " folds" in out and " 1 folds" not in out
    assert fails(call("evaluate", qrels, "--run", one, "--folds", path), "two or more with --run")
    qrels.write_text(qrels.read_text() + "q5\ta\t1\n")
    assert fails(call("evaluate", qrels, *runs), "query 'q5' was measured but is in no fold")
    assert fails(call("folds", qrels, "-o", path, "--folds", 9), "5 queries do not fill 9 folds")
    assert len(read_folds(path)) == 4  # what was there stays


def test_slices(files, call, tmp_path):
    folder, one, two, _ = files
    table = tmp_path / "slices.csv"
    kinds = [f"bm25:{one}:RR", "query-length:1,3", "document-length:2,3", "query.kind", "document.lang"]
    arguments = ["evaluate", folder, "--run", one, "--run", two, "--measures", "RR P@1"]
    arguments += [word for kind in kinds for word in ("--slice", kind)]
    code, out, _ = call(*arguments, "--slice-table", table, "--json")
    assert code == 0
    found = {
        slicing["slice"]: {part["part"]: part["queries"] for part in slicing["parts"]}
        for slicing in json.loads(out)["slices"]
    }
    assert found == {
        kinds[0]: {"easy": 2, "hard": 2},
        "query-length:1,3": {"to 1": 2, "above 1 to 3": 1, "above 3": 1},
        "document-length:2,3": {"to 2": 1, "above 2 to 3": 1, "above 3": 2},  # 1; 3; 5 and (3 + 5) / 2
        "query.kind": {"words": 2, "sum": 1, "(none)": 1},
        "document.lang": {"de": 2, "en": 2, "(none)": 1},
    }
    halves = json.loads(out)["slices"][0]
    assert halves["note"] == "easy from 1.0000, hard to 0.5000"
    assert halves["parts"][1]["runs"][str(one)] == {"RR": pytest.approx((1 / 2 + 1 / 3) / 2), "P@1": 0}
    rows = read(table)
    assert rows[0] == ["slice", "part", "queries", "run", "RR", "P@1"]
    assert rows[2] == [kinds[0], "easy", "2", str(two), str((1 / 2 + 1 / 3) / 2), "0.0"]
    assert len(rows) == 1 + 2 * sum(map(len, found.values()))
    code, out, _ = call(*arguments)
    assert code == 0 and f"{kinds[0]} (easy from 1.0000, hard to 0.5000)" in out
    second = (2 / math.log2(3) + 1 / math.log2(4)) / (2 + 1 / math.log2(3))  # nDCG@10 of q2, by default
    default = json.loads(call("evaluate", folder, "--run", two, "--slice", f"bm25:{one}", "--json")[1])
    assert default["slices"][0]["note"] == f"easy from 1.0000, hard to {second:.4f}"


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ([], "easy from 1.0000, hard to 0.5000"),
        (["--condensed"], "easy from 1.0000, hard to 1.0000"),  # all that stands before is unjudged
        (["--relevant-from", 3], "easy from 0.0000, hard to 0.0000"),  # only -4 has such a document
    ],
)
def test_halves_go_by_the_same_relevance_as_the_measures(files, call, more, note):
    folder, one, two, _ = files
    arguments = ("evaluate", folder, "--run", two, "--measures", "RR", "--slice", f"bm25:{one}:RR", "--json")
    code, out, err = call(*arguments, *more)
    assert code == 0, err
    assert json.loads(out)["slices"][0]["note"].startswith(note)


def test_slices_that_cannot_be_cut(files, call, tmp_path):
    folder, one, _, qrels = files
    arguments = ("evaluate", folder, "--run", one, "--slice")
    for kind in ("magic", "bm25", "bm25:", "query.", "query-lengths"):
        assert fails(call(*arguments, kind), f"unknown slice '{kind}'", "document.FIELD")
    assert fails(call(*arguments, "query-length:a,b"), "expected edges such as 40,80,120, found 'a,b'")
    for edges in ("nan", "4,nan,8", "inf", "1e999"):
        assert fails(call(*arguments, f"query-length:{edges}"), f"such as 40,80,120, found '{edges}'")
    assert fails(call(*arguments, "query-length:8,4"), "edges must rise")
    assert fails(call(*arguments, "query.sort"), "nothing has a field 'sort'; there are: kind")
    assert fails(call(*arguments, "bm25:absent.trec"), "absent.trec")
    assert fails(call(*arguments, f"bm25:{one}:nCDG@10"), "nDCG@10")
    for kind in ("query-length", "document-length", "query.kind", "document.lang"):
        assert fails(call("evaluate", qrels, "--run", one, "--slice", kind), "holds judgements only")
    table = tmp_path / "slices.csv"
    assert fails(call("evaluate", folder, "--run", one, "--slice-table", table), "add --slice KIND")


def test_the_table_of_queries(files, call, tmp_path):
    folder, one, two, qrels = files
    table = tmp_path / "queries.csv"
    runs = ("--measures", "RR P@1", "--per-query", table)
    code, _, _ = call(
        *("evaluate", folder, "--run", one, "--run", two, *runs),
        *("--slice", "query.kind", "--slice", "document.lang", "--relevant-from", 2),
    )
    rows = read(table)
    columns = [f"{measure} {run}" for measure in ("RR(rel=2)", "P(rel=2)@1") for run in (one, two)]
    assert code == 0 and rows[0] == ["query", "text", "relevant", "query.kind", "document.lang", *columns]
    assert rows[1] == ["q1", "'=SUM(A1)", "1", "sum", "en", "1.0", "0.5", "1.0", "0.0"]
    assert rows[2][:5] == ["q2", "two words", "1", "words", "de"]
    assert rows[4][:5] == ["-4", "four", "1", "(none)", "(none)"]
    code, _, _ = call("evaluate", qrels, "--run", one, *runs)
    assert read(table)[:2] == [["query", "relevant", "RR", "P@1"], ["q1", "1", "1.0", "1.0"]]


def test_spreadsheets_run_nothing(tmp_path):
    path = tmp_path / "t.csv"
    texts = [
        "=1+1",
        "+cmd",
        "-cmd|x",
        "@sum",
        "\t=1+1",
        "\r\n@x",
        "fine = so",
        "-12",
        "+3.5",
        "-1+1",
        "two\nlines",
    ]
    csv_table(path, ["text", "value"], [[text, -0.5] for text in texts])
    assert path.read_bytes().startswith(b"text,value\n")  # no byte order mark
    assert [row[0] for row in read(path)[1:]] == [
        *(
            "'=1+1",
            "'+cmd",
            "'-cmd|x",
            "'@sum",
            "'=1+1",
            "'@x",
            "fine = so",
            "-12",
            "+3.5",
            "'-1+1",
            "two lines",
        ),
    ]
    assert {row[1] for row in read(path)[1:]} == {"-0.5"}
    csv_table(path, ["text"], [["\ud800 \x1b[2J\u202ea"]])
    assert read(path) == [["text"], [r"\ud800 \x1b[2J\u202ea"]]


def test_text_tables_line_up():
    assert text_table(["run", "nDCG(judged_only=True)@10", "n"], [["a", 0.5, 3], ["longer", 1.0, 12]]) == (
        "run     nDCG(judged_only=True)@10   n\na                          0.5000   3\n"
        "longer                     1.0000  12"
    )


@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_a_split_without_a_judgement(collection, lexical, call, command):
    (collection / "qrels" / "empty.tsv").write_text("query-id\tcorpus-id\tscore\n")
    where = (collection, "--index", lexical) if command == "evaluate" else (lexical, collection)
    assert fails(call(command, *where, "--split", "empty"), "split empty", "no judgements")


def test_where_nothing_could_be_written_nothing_is_searched(collection, lexical, call, tmp_path):
    base = ("evaluate", collection, "--index", lexical, "--workflow", "lexical")
    for option in ("--save-run", "--per-query"):
        assert fails(call(*base, option, tmp_path / "no" / "x"), f"{option} ", "does not exist")
        assert fails(call(*base, option, tmp_path), f"{option} ", "is a folder")
    same = ("--save-run", tmp_path / "one", "--per-query", tmp_path / "x" / ".." / "one")
    (tmp_path / "x").mkdir()
    assert fails(call(*base, *same), "--save-run and --per-query name the same file")
    assert not (tmp_path / "one").exists()
    os.mkfifo(tmp_path / "pipe")  # one for both replaces nothing
    check_outputs({"--save-run": tmp_path / "pipe", "--per-query": tmp_path / "pipe"})


def test_what_is_read_is_not_replaced(collection, lexical, call, tmp_path):
    run, base = tmp_path / "run.trec", ("evaluate", collection, "--index", lexical, "--workflow", "lexical")
    assert call(*base, "--save-run", run)[0] == 0
    before = run.read_bytes()
    assert fails(call("evaluate", collection, "--run", run, "--per-query", run), "is an input")
    assert fails(call(*base, "--rerank", run, "--save-run", run), "is an input")
    assert run.read_bytes() == before


def test_a_run_outlives_a_table_that_cannot_be_written(collection, lexical, call, tmp_path):
    run, base = tmp_path / "run.trec", ("evaluate", collection, "--index", lexical, "--workflow", "lexical")
    code, _, err = call(*base, "--save-run", run, "--per-query", "/proc/x.csv")
    assert code == 2 and "/proc" in err and Run.read(run).queries == ("q1", "q2")


def test_an_id_that_a_run_cannot_hold_costs_no_figure(collection, call, tmp_path):
    corpus = collection / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace('"whale"', '"a whale"').replace("sea.", "sea, no fox."))
    assert call("index", collection, "-o", tmp_path / "i", "--model", "none")[0] == 0
    base = ("evaluate", collection, "--index", tmp_path / "i", "--workflow", "lexical")
    code, out, err = call(*base, "--save-run", tmp_path / "run.trec")
    assert code == 2 and "a document id must be one word" in err and not (tmp_path / "run.trec").exists()
    assert (
        out.splitlines()[1:]
        and out.partition("milliseconds")[0] == call(*base)[1].partition("milliseconds")[0]
    )


def test_what_belongs_to_a_search_is_not_taken_for_a_run(files, call):
    folder, run, _, _ = files
    for option in (
        ("-k", 3),
        ("--weights", "lexical=1"),
        ("--fusion", "rrf"),
        ("--feedback", "0.1"),
        ("--exhaustive",),
        ("--model", "x"),
        ("--workflow", "lexical"),
    ):
        assert fails(call("evaluate", folder, "--run", run, *option), f"{option[0]}: ", "use --index")


def test_a_bare_file_of_judgements_has_no_split(files, call):
    _, one, _, qrels = files
    code, _, err = call("evaluate", qrels, "--run", one, "--split", "dev")
    assert code == 0 and "no splits; --split dev is ignored" in err


def test_documents_of_an_index_of_passages_are_rescored(collection, call, tmp_path):
    index, run = tmp_path / "passages", tmp_path / "run.trec"
    assert call("index", collection, "-o", index, "--model", "none", "--passage-words", 3)[0] == 0
    base = ("evaluate", collection, "--index", index, "--workflow", "lexical", "--json", "--measures", "AP")
    first = json.loads(call(*base, "--save-run", run)[1])["measures"]
    saved = Run.read(run)
    assert {name for query in saved for name, _ in saved[query]} <= set(DOCUMENTS) and first["AP"] == 1
    code, out, err = call(*base, "--rerank", run, "--save-run", tmp_path / "again.trec")
    assert code == 0, err
    assert json.loads(out)["measures"] == first and Run.read(tmp_path / "again.trec") == saved


def test_queries_without_text_find_nothing_and_are_counted(collection, lexical, call):
    with open(collection / "queries.jsonl", "a") as file:
        file.write(json.dumps({"_id": "blank", "text": " "}) + "\n")
    with open(collection / "qrels" / "test.tsv", "a") as file:
        file.write("blank\tempty\t1\n")
    code, out, err = call("evaluate", collection, "--index", lexical, "-w", "lexical", "--json")
    found = json.loads(out)
    assert code == 0 and "1 of 3 queries have no text, such as 'blank'; they find nothing" in err
    assert (found["queries"], found["without_text"], found["without_results"]) == (3, 1, 1)
    assert found["measures"]["R@100"] == pytest.approx(2 / 3)
    for query in ("", "  "):
        fails(call("search", lexical, query, "--json"), "the query is empty")

import codecs
import gzip
import os
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data import is_trec_run, read_qrels, read_trec_run, trec, write_qrels, write_trec_run
from counterpoint.errors import ArtifactError, DataError

words = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)
runs = st.dictionaries(
    words, st.dictionaries(words, st.floats(allow_nan=False, allow_infinity=False), min_size=1)
)
judgements = st.dictionaries(words, st.dictionaries(words, st.integers(-2, 4), min_size=1), max_size=5)


@settings(max_examples=25, deadline=None)  # each writes files
@given(runs)
def test_run_round_trip(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "a.trec.gz"
    write_trec_run(scores, path, tag="mine")
    assert read_trec_run(path) == (scores, "mine" if scores else "")


@pytest.mark.parametrize("layout", ["trec", "msmarco", "beir"])
@settings(max_examples=25, deadline=None)  # each writes files
@given(qrels=judgements)
def test_qrels_round_trip(tmp_path_factory, layout, qrels):
    path = tmp_path_factory.mktemp("qrels") / "a.tsv"
    write_qrels(qrels, path, layout=layout)
    assert read_qrels(path) == qrels


columns = [
    st.sampled_from(["q1", "q2", "é"]),
    st.just("Q0"),
    st.sampled_from(["a", "b", "c", "d", "\ufeff"]),
    st.just("1"),
    st.sampled_from(["1.5", "-2", "1e400", "nan", "x", "3", "1e308", "0.25"]),
    st.sampled_from(["tag", "other"]),
]
run_lines = st.one_of(
    st.tuples(*columns).map(" ".join),
    st.tuples(*columns).map("\t".join),
    st.sampled_from(["", "  ", "q1 Q0 a 1", "q1 Q0 a 1 2 t extra", "\x0c"]),
)


def read_by(function, path):
    try:
        return function(path)
    except DataError as error:
        return str(error)


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(run_lines, max_size=6),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    mark=st.sampled_from([b"", codecs.BOM_UTF8, b"\xff"]),
    block=st.integers(1, 40),
)
def test_both_readers_of_runs_agree(tmp_path_factory, lines, end, last, mark, block):
    """The fast reader reads what the thorough one reads, or leaves the file to it, wherever blocks end."""
    path = tmp_path_factory.mktemp("run") / "r"
    path.write_bytes(mark + (end.join(lines) + end * last).encode())
    thorough = read_by(trec._read_any_run, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "BLOCK", block)
        fast = trec._read_sound_run(path)
    assert fast is None or fast == thorough
    assert read_by(read_trec_run, path) == thorough


def test_the_fast_reader_reads_a_sound_run(tmp_path):
    (tmp_path / "r").write_text("q2 Q0 a 1 3 mine\nq1 Q0 b 1 2 other\n\nq2 Q0 c 2 1 mine")
    assert trec._read_sound_run(tmp_path / "r") == ({"q2": {"a": 3, "c": 1}, "q1": {"b": 2}}, "mine")


def test_run_is_written_in_trec_evals_order(tmp_path):
    write_trec_run({"q": {"b": 1.0, "c": 2.5, "a": 1}}, tmp_path / "r")
    assert (tmp_path / "r").read_text() == (
        "q Q0 c 1 2.5 counterpoint\nq Q0 b 2 1.0 counterpoint\nq Q0 a 3 1.0 counterpoint\n"
    )


def test_run_rows_of_a_query_need_not_stand_together(tmp_path):
    (tmp_path / "r").write_text("q1 Q0 a 1 3 t\nq2\tQ0\tb 1 2 t\n\nq1 Q0 c 2 -1e-3 t\n\n")
    assert read_trec_run(tmp_path / "r").scores == {"q1": {"a": 3.0, "c": -0.001}, "q2": {"b": 2.0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 d 1 2.0", "found 5 columns"),
        ("q Q0 my d 1 2.0 t", "found 7 columns"),
        ("q Q0 d 1 high t", "finite number, found 'high'"),
        ("q Q0 d 1 NaN t", "finite number, found 'NaN'"),
        ("q Q0 d 1 -inf t", "finite number, found '-inf'"),
        ("q Q0 a 2 1 t", "document 'a' is ranked twice for query 'q'"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_bad_run_lines(tmp_path, line, message, packed):
    path = tmp_path / ("r.gz" if packed else "r")
    data = f"q Q0 a 1 3 t\n{line}\n".encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DataError, match=message) as caught:
        read_trec_run(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_ids_with_spaces_fit_beir_only(tmp_path):
    with pytest.raises(DataError, match="a document id must be one word in TREC's files, found 'd 1'"):
        write_trec_run({"q": {"d 1": 1.0}}, tmp_path / "r")
    with pytest.raises(DataError, match="one word"):
        write_qrels({"q 1": {"d": 1}}, tmp_path / "r")
    with pytest.raises(DataError, match="not finite"):
        write_trec_run({"q": {"d": float("nan")}}, tmp_path / "r")
    assert not (tmp_path / "r").exists()
    write_qrels({"q 1": {"d 1": 1}}, tmp_path / "q.tsv", layout="beir")
    assert read_qrels(tmp_path / "q.tsv") == {"q 1": {"d 1": 1}}
    with pytest.raises(DataError, match="tabs or line ends"):
        write_qrels({"q\t1": {"d 1": 1}}, tmp_path / "q.tsv", layout="beir")


def test_writing_where_one_may_not(tmp_path):
    with pytest.raises(ArtifactError, match="cannot write"):
        write_qrels({"q": {"d": 1}}, tmp_path / "absent" / "q.tsv")


def test_the_first_line_decides_the_layout(tmp_path):
    path = tmp_path / "q"
    path.write_bytes(b"\xef\xbb\xbfquery-id\tcorpus-id\tscore\r\n1\t2\t0\r\n")
    assert read_qrels(path) == {"1": {"2": 0}}
    path.write_text("1 0 2 0\n1 0 3 2\n")
    assert read_qrels(path) == {"1": {"2": 0, "3": 2}}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "1\t2\t1\n",
            1,
            r"expected four columns \(query 0 document grade\), found 3 columns; if these are BEIR.s three",
        ),
        ("query-id\tcorpus-id\tscore\n1\t2\n", 2, "expected three tab-separated columns .* found 2"),
        ("1 0 2 1\n1 0 2 x\n", 2, "grade must be a whole number, found 'x'"),
        ("1 0 2 1\n1 0 3 0\n1 0 2 2\n", 3, "query '1', document '2': grade 2 here and 1 above"),
    ],
)
def test_bad_qrels(tmp_path, text, line, message):
    path = tmp_path / "q"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_qrels(path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_a_repeated_judgement_is_no_contradiction(tmp_path):
    (tmp_path / "q").write_text("1 0 2 1\n1 0 2 1\n")
    assert read_qrels(tmp_path / "q") == {"1": {"2": 1}}


@pytest.mark.parametrize("line", ["q1 Q0 b 2 0.5 tag", "q1 Q0 b"])
def test_a_pipe_is_read_once(tmp_path, line):
    """What a first look has used up is not there for a second."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = f"q1 Q0 a 1 1.5 tag\n{line}\n"
    writer = Thread(target=pipe.write_text, args=(text,))
    writer.start()
    if line.endswith("tag"):
        assert read_trec_run(pipe) == ({"q1": {"a": 1.5, "b": 0.5}}, "tag")
    else:
        with pytest.raises(DataError, match="pipe:2: a run has six columns"):
            read_trec_run(pipe)
    writer.join()


def test_a_file_without_a_line_is_a_run_that_found_nothing(tmp_path):
    for name, write in (("empty", open), ("packed.gz", gzip.open)):
        with write(tmp_path / name, "wt") as file:
            file.write("")
        assert is_trec_run(tmp_path / name) and read_trec_run(tmp_path / name) == ({}, "")
    (tmp_path / "blank").write_text("\n \n")
    assert is_trec_run(tmp_path / "blank")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    assert not is_trec_run(tmp_path / "qrels")

"""The prompt of `search`, queries from stdin and from a file."""

import json
import os
import select
import subprocess
import sys
import time

import pytest
from tests.cli.commands import fails, in_a_process

from counterpoint.search import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


class Talk:
    """A command on a terminal of its own."""

    def __init__(self, *arguments, cwd, state, **more):
        import pty

        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            environment = dict(os.environ, TERM="dumb", COLUMNS="200", XDG_STATE_HOME=str(state), **more)
            words = [sys.executable, "-m", "counterpoint", *map(str, arguments)]
            os.execvpe(sys.executable, words, environment)

    def until(self, sign, seconds=60):
        """What comes up to and with a sign, at the end of what was written."""
        text, end = "", time.monotonic() + seconds
        while not text.endswith(sign):
            block = self.block(end)
            assert block, text
            text += block
        return text

    def block(self, end):
        """What comes next; nothing once it has ended."""
        ready = select.select([self.end], [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            os.kill(self.pid, 9)
        assert ready, "nothing comes"
        try:
            return os.read(self.end, 1 << 16).decode()
        except OSError:  # EIO: it has ended
            return ""

    def send(self, line):
        os.write(self.end, line.encode())

    def say(self, line):
        """Type a line; what is answered up to the next prompt, what was typed left out."""
        self.send(line + "\n")
        return self.until("\n> ").partition("\n")[2]

    def rest(self, seconds=60):
        """All that comes to the end, and the exit code."""
        text, end = "", time.monotonic() + seconds
        while block := self.block(end):
            text += block
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.end)
        return text, code


@pytest.fixture
def talk(lexical, tmp_path):
    return Talk("search", lexical, "-k", "2", cwd=tmp_path, state=tmp_path / "state")


def test_a_conversation(talk, tmp_path):
    assert "4 documents. Ask, or type :help; Ctrl-D ends." in talk.until("> ")
    assert "quick brown fox" in talk.say("fox")
    assert "lives in the sea" in talk.say("a whale")
    said = talk.say(":k 1")
    assert "hybrid, 1 document, not explained" in said
    assert "matched" not in talk.say("fox whale")
    assert "explained in full" in talk.say(":explain full")
    assert "matched" in talk.say("fox")
    assert "explained" in talk.say(":explain")
    assert "lexical, 1 document" in talk.say(":w lexical")
    assert ":quit" in talk.say(":help")
    assert talk.say("") == "> "
    talk.send(":quit\n")
    _, code = talk.rest()
    assert code == 0
    history = tmp_path / "state" / "counterpoint" / "history"
    assert history.read_text().splitlines()[:3] == ["fox", "a whale", ":k 1"]
    assert history.stat().st_mode & 0o077 == 0


def test_mistakes_are_told_and_the_prompt_comes_again(talk):
    talk.until("> ")
    assert "error: :k takes a whole number from 1" in talk.say(":k none")
    assert "error: :k takes" in talk.say(":k 0")
    assert "error: :w takes hybrid, lexical" in talk.say(":w sideways")
    assert "error: workflow dense: this index has no such part; it has lexical" in talk.say(":w dense")
    assert "error: :explain takes nothing, full or no" in talk.say(":explain twice")
    assert "error: there is no :sing; :help lists" in talk.say(":sing")
    assert "quick brown fox" in talk.say("fox")  # as before
    talk.send("half a ques")
    talk.until("half a ques")
    time.sleep(0.2)  # Python sees a Ctrl-C only while it waits for a key
    talk.send("\x03")
    talk.until("> ")
    talk.send("\x04")
    text, code = talk.rest()
    assert code == 0 and "Traceback" not in text


def test_questions_of_yesterday_come_back(talk, lexical, tmp_path):
    talk.until("> ")
    talk.say("whale")
    talk.send("\x04")
    talk.rest()
    again = Talk("search", lexical, cwd=tmp_path, state=tmp_path / "state")
    again.until("> ")
    again.send("\x10\n")  # Ctrl-P: the line before
    assert "lives in the sea" in again.until("> ")
    again.send("\x04")
    assert again.rest()[1] == 0


@pytest.mark.slow
def test_the_model_is_loaded_once(collection, tiny_bert_folder, tmp_path, call):
    assert call("index", collection, "-o", tmp_path / "i", "--model", tiny_bert_folder)[0] == 0
    talk = Talk("search", tmp_path / "i", cwd=tmp_path, state=tmp_path)
    assert "loading " in talk.until("> ")
    said = talk.say("fox") + talk.say(":w dense") + talk.say("fox") + talk.say(":w lexical")
    assert "loading" not in said and "dense, 10 documents" in said
    talk.send("\x04")
    assert talk.rest()[1] == 0


def test_what_cannot_be_searched_so_is_told_before_the_prompt(lexical, tmp_path):
    text, code = Talk("search", lexical, "-w", "dense", cwd=tmp_path, state=tmp_path).rest()
    assert code == 2 and "no such part" in text and "> " not in text


def test_without_a_query_and_a_terminal(lexical, call):
    assert fails(
        in_a_process("search", lexical, stdin=-3), "QUERY", "- for queries from stdin", "--queries FILE"
    )


def test_stdin_to_json_lines(lexical):
    given = "fox\n\n  \nplatform nine\r\nzzz\n"
    done = in_a_process("search", lexical, "-", "-k", "1", input=given)
    assert done.returncode == 0 and done.stderr == ""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["query"] for answer in answers] == ["fox", "platform nine", "zzz"]
    assert [[hit["id"] for hit in answer["hits"]] for answer in answers] == [["fox"], ["train"], []]
    assert all(answer["milliseconds"] >= 0 for answer in answers)
    assert "explanation" not in answers[0]["hits"][0]
    done = in_a_process("search", lexical, "-", "--explain", input="fox")
    assert "explanation" in json.loads(done.stdout)["hits"][0]
    assert in_a_process("search", lexical, "-", input="").stdout == ""


def test_each_answer_of_stdin_comes_at_once(lexical):
    command = [sys.executable, "-m", "counterpoint", "search", str(lexical), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for query in ("fox", "whale"):
            process.stdin.write(query + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["query"] == query
        process.stdin.close()


def test_stdin_that_is_not_utf8(lexical):
    command = [sys.executable, "-m", "counterpoint", "search", str(lexical), "-"]
    done = subprocess.run(command, input="fox\nWärme\n".encode("latin-1"), capture_output=True)
    assert done.returncode == 2 and b"stdin:2: not UTF-8" in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_queries_of_a_file_to_a_run(lexical, collection, tmp_path, call, kind):
    rows = {"q1": "fox", "q2": "platform of the trains", "q3": "zzz"}
    path = tmp_path / f"queries.{kind}"
    if kind == "tsv":
        path.write_text("".join(f"{name}\t{text}\n" for name, text in rows.items()))
    else:
        path.write_text(
            "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in rows.items())
        )
    code, out, err = call("search", lexical, "--queries", path, "-o", tmp_path / "run.trec")
    assert code == 0, err
    assert out == f"{tmp_path / 'run.trec'}: 3 queries, 2 rows\n"
    run = Run.read(tmp_path / "run.trec")
    assert run["q1"][0][0] == "fox" and run["q2"][0][0] == "train" and "q3" not in run
    code, out, _ = call("evaluate", collection, "--run", tmp_path / "run.trec", "--json")
    assert code == 0 and json.loads(out)["measures"]["RR@10"] > 0
    code, out, _ = call("search", lexical, "--queries", path, "-o", tmp_path / "run.trec", "--json")
    assert json.loads(out) == {"output": str(tmp_path / "run.trec"), "queries": 3, "rows": 2}


def test_a_run_is_a_thousand_deep_unless_said_otherwise(tmp_path, call):
    (tmp_path / "many.tsv").write_text("".join(f"d{n}\tword {n}\n" for n in range(30)))
    assert call("index", tmp_path / "many.tsv", "-o", tmp_path / "i", "--model", "none")[0] == 0
    (tmp_path / "q.tsv").write_text("q\tword\n")
    for more, rows in (((), 30), (("-k", "5"), 5), (("-k7",), 7)):
        assert (
            call("search", tmp_path / "i", "--queries", tmp_path / "q.tsv", "-o", tmp_path / "r", *more)[0]
            == 0
        )
        assert len(Run.read(tmp_path / "r")["q"]) == rows


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--queries", "Q"), "name it with -o RUN"),
        (("-o", "run"), "-o RUN needs --queries FILE"),
        (("fox", "--queries", "Q", "-o", "run"), "leave QUERY out"),
        (("--queries", "Q", "-o", "run", "--explain"), "leave --explain out"),
        (("--queries", "Q", "-o", "run", "--html", "p"), "leave --html out"),
        (("--queries", "Q", "-o", "Q"), "is an input"),
        (("--queries", "missing", "-o", "run"), "missing"),
        (("-", "--html", "p"), "--html is for one QUERY"),
        (("fox", "--explain=all"), "all"),
    ],
)
def test_what_does_not_go_together(more, said, lexical, tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Q").write_text("q\tfox\n")
    assert fails(call("search", lexical, *more), said)
    assert not (tmp_path / "run").exists()


def test_explain_takes_a_value_or_none(lexical, call):
    plain = call("search", lexical, "fox")[1]
    words = call("search", lexical, "--explain", "fox")[1]
    assert "matched" in words and "matched" not in plain
    assert call("search", lexical, "fox", "--explain=words")[1] == words
    assert "matched" in call("search", lexical, "fox", "--explain=full")[1]
    assert call("search", lexical, "fox", "--explain=no")[1] == plain
    assert "No document matches" in call("search", lexical, "--", "--explain")[1]

"""The examples of the page on data run as they stand, one after the other."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        exec(compile(block, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "bread.md | Bread | Bread" in shown
    assert "corpus.jsonl:2: no 'text' among the keys '_id'" in shown

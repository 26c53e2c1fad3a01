"""Disk usage of an index that is written meanwhile."""

import os

from counterpoint.index import Index, build_index
from counterpoint.types import Document


def test_a_file_that_another_process_removes_meanwhile_is_not_counted(tmp_path, monkeypatch):
    folder = tmp_path / "i"
    build_index([Document("a", "a fox")], None, folder)
    with Index(folder) as index:
        expected = index.info()["bytes"]
        passing, walk = folder / ".manifest.json.partial", os.walk

        def walked(top):
            passing.write_text("{}")
            found = list(walk(top))
            passing.unlink()
            return found

        monkeypatch.setattr(os, "walk", walked)
        assert index.info()["bytes"] == expected

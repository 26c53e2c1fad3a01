"""Files of a commit are closed when nobody uses it any longer, without waiting for cycles to be collected."""

import gc
import os
from pathlib import Path

import pytest
from tests.index.test_changes import LAYOUTS

from counterpoint.index import Index, build_index
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.search import Searcher
from counterpoint.types import Document

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open files")


def removed_but_open(folder):
    """The files below a folder that this process has open or mapped, and that were removed."""
    links = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    mapped = [line.split(None, 5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return [each for each in links + mapped if each.startswith(str(folder)) and "(deleted)" in each]


def used(index, layout):
    """Everything that a reader may open or remember."""
    for settings in layout.searches:
        for workflow in layout.workflows:
            searcher = Searcher(index, layout.model, settings)
            searcher.search("fox text", 3, workflow=workflow, explain=True)
            searcher.where("year > 1").search("fox text", 3, workflow=workflow)
            searcher.run({"q": "fox"}, 3, workflow=workflow)
    index.info()


def changed(folder, model, number):
    with Index(folder) as index, changing(index, model) as change:
        change.add([Document(f"n{number}", "fox again", metadata={"year": 1, "lang": "en"})])
        change.delete([f"d{number}"])
    with Index(folder) as index:
        compact(index, everything=True)


@pytest.mark.parametrize("name", LAYOUTS)
def test_files_of_old_commits_are_closed(name, tmp_path):
    layout, folder = LAYOUTS[name], tmp_path.resolve() / "i"
    documents = [Document(f"d{i}", f"fox text {i}", metadata={"year": i, "lang": "en"}) for i in range(12)]
    build_index(documents, layout.model, folder, layout.settings)
    gc.collect()
    gc.disable()
    try:
        reader = Index(folder)
        used(reader, layout)
        for number in range(2):
            changed(folder, layout.model, number)
            assert removed_but_open(folder)  # by the reader, which has the old commit
            reader = reader.refreshed()
            used(reader, layout)
            assert removed_but_open(folder) == []
        reader.close()
    finally:
        gc.enable()

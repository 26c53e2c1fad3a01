import pytest
from tests.sweep.fake import write_collection, write_grid

GRID = """
measures = ["nDCG@5", "R@5"]
models = ["one", "none"]
workflows = ["hybrid", "lexical", "dense", "words"]
k = 5
[[collections]]
source = "animals"
[index]
codec = ["int4", "float32"]
[search]
fusion = ["ceiling", "rrf"]
"""


@pytest.fixture
def animals(tmp_path):
    """A collection of five documents and three judged queries, next to the grid."""
    return write_collection(tmp_path / "animals")


@pytest.fixture
def grid(tmp_path, animals):
    return write_grid(tmp_path / "grid.toml", GRID)

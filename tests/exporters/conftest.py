"""An index for exports, built once; read only."""

import pytest
from tests.exporters.notes import build, documents
from tests.fakes import HashModel

from counterpoint.library.opened import OpenIndex


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("exporters") / "my notes.index"
    build(place, documents())
    return place


@pytest.fixture
def notes(folder):
    with OpenIndex(folder, HashModel()) as opened:
        yield opened

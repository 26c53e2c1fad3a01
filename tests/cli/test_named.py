"""The names of indexes on a command line."""

import pytest

from counterpoint.cli.named import index_name, named, named_places
from counterpoint.errors import ConfigError


def test_names_come_from_folders_and_addresses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    given = {
        "notes/": ("notes", "notes/"),
        ".": (tmp_path.name, "."),
        "papers=/data/p.index": ("papers", "/data/p.index"),
        "a=b": ("a=b", "a=b"),
        "http://localhost:8000/wiki": ("wiki", "http://localhost:8000/wiki"),
        "https://localhost:8000": ("localhost:8000", "https://localhost:8000"),
        "w=http://localhost:8000/wiki": ("w", "http://localhost:8000/wiki"),
    }
    assert named_places(list(given), index_name, "indexes") == dict(given.values())


@pytest.mark.parametrize("place", ["a.trec", "=a.trec", "runs/seed=1.trec", "http://localhost:8000/w?x=y"])
def test_a_place_without_a_name_stays_whole(place):
    assert named(place) == (None, place)


def test_two_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two indexes are called 'notes'; name them: NAME=b/notes"):
        named_places(["a/notes", "b/notes"], index_name, "indexes")

"""A damaged or lost manifest is made again from its copy, and is the last commit's."""

import json

import pytest
from tests.fakes import HashModel

from counterpoint.cli.main import main
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, Manifest, build_index
from counterpoint.index.changing import changing
from counterpoint.index.manifest import COPY, NAME
from counterpoint.index.manifest_copy import damaged_copy, restore
from counterpoint.index.repairing import repair
from counterpoint.types import Document


def documents(first, end):
    return [Document(f"d{i}", f"text number {i}") for i in range(first, end)]


@pytest.fixture
def folder(tmp_path):
    """An index that has changed since it was built."""
    build_index(documents(0, 9), HashModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index, changing(index, HashModel()) as change:
        change.add(documents(9, 12))
        change.delete(["d2"])
    return tmp_path / "i"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


HURTS = {
    "flip": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "empty": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe"),
    "other JSON": lambda path: path.write_text("[]"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", HURTS)
def test_the_manifest_comes_back(folder, how):
    whole = (folder / NAME).read_bytes()
    assert (folder / COPY).read_bytes() == whole and restore(folder) is None
    HURTS[how](folder / NAME)
    with pytest.raises(ArtifactError):
        Index(folder)
    assert repair(folder).files == [NAME]
    assert (folder / NAME).read_bytes() == whole
    assert repair(folder).files == []


@pytest.mark.parametrize("how", [how for how in HURTS if how != "gone"])
def test_the_copy_comes_back(folder, how):
    HURTS[how](folder / COPY)
    assert damaged_copy(folder)
    Index(folder).close()
    assert repair(folder).files == [COPY]
    assert (folder / COPY).read_bytes() == (folder / NAME).read_bytes()


def test_both_are_lost(folder):
    for name in (NAME, COPY):
        flip(folder / name)
    before = (folder / NAME).read_bytes()
    with pytest.raises(ArtifactError, match="is damaged|was damaged"):
        repair(folder)
    assert (folder / NAME).read_bytes() == before


def test_a_manifest_of_another_version_is_no_damage(folder):
    """Its writer may have kept no copy; ours would bring an old state back."""
    body = json.loads((folder / NAME).read_text()) | {"version": 99}
    (folder / NAME).write_text(json.dumps(body))
    with pytest.raises(ArtifactError, match="index format 99"):
        repair(folder)
    assert json.loads((folder / NAME).read_text())["version"] == 99


def test_an_index_without_a_copy(folder):
    """As earlier versions wrote it: nothing is said, and the first change writes one."""
    (folder / COPY).unlink()
    assert not damaged_copy(folder) and restore(folder) is None
    with Index(folder) as index, changing(index, HashModel()) as change:
        change.delete(["d3"])
    assert (folder / COPY).read_bytes() == (folder / NAME).read_bytes()
    (folder / COPY).unlink()
    flip(folder / NAME)
    with pytest.raises(ArtifactError, match="verify INDEX --repair"):
        Manifest.read(folder)


def test_a_folder_that_is_no_index(tmp_path):
    with pytest.raises(ArtifactError, match="no such folder"):
        restore(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match="not a Counterpoint index"):
        restore(tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir())


def test_on_the_command_line(folder, capsys):
    flip(folder / COPY)
    assert main(["verify", str(folder)]) == 2
    said = capsys.readouterr()
    assert f"{folder / COPY}: damaged; --repair makes it again" in said.err and "1 damaged" in said.out
    flip(folder / COPY)
    flip(folder / NAME)
    assert main(["verify", str(folder)]) == 2
    assert "verify INDEX --repair" in capsys.readouterr().err
    assert main(["verify", str(folder), "--repair", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] and said["repaired"]["files"] == [NAME]

"""Folders are replaced whole, by their own kind, and nothing else is ever deleted."""

import os

import pytest

from counterpoint import folders
from counterpoint.errors import ArtifactError
from counterpoint.files import temporary_next_to
from counterpoint.folders import FolderKind, publish_folder, remove_made, whole_folder

KIND = FolderKind("known", ("sub/*",))


@pytest.fixture(params=["exchange", "renames"])
def way(request, monkeypatch):
    """Both ways of replacing: in one step, and where the system has none, by two renames."""
    if request.param == "renames":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    return request.param


def publish(path, text, **options):
    with publish_folder(path, kind=KIND, **options) as inside:
        (inside / "known").write_text(text)
        (inside / "sub").mkdir()
        (inside / "sub" / "deep").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_whole_or_not_at_all(tmp_path, way):
    target = tmp_path / "above" / "folder"
    with publish_folder(target) as inside:
        (inside / "known").write_text("1")
        assert not target.exists()
    assert (target / "known").read_text() == "1"
    with pytest.raises(ArtifactError, match="already exists"):
        publish(target, "2")
    with pytest.raises(RuntimeError), publish_folder(target, overwrite=True, kind=KIND) as inside:
        (inside / "known").write_text("half")
        raise RuntimeError
    assert (target / "known").read_text() == "1"
    publish(target, "2", overwrite=True)
    assert names(target) == ["known", "sub"] and names(target.parent) == ["folder"]
    (tmp_path / "link").symlink_to(target)
    publish(tmp_path / "link", "3", overwrite=True)
    assert (tmp_path / "link").is_symlink() and (target / "known").read_text() == "3"
    assert names(tmp_path) == ["above", "link"] and names(target.parent) == ["folder"]


def test_a_folder_that_holds_anything_else_is_never_replaced(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    publish(target, "an empty folder may be taken", overwrite=True)
    thesis = target / "thesis.txt"
    thesis.write_text("years")
    with pytest.raises(ArtifactError, match=r"contains 'thesis.txt', which would be lost; move it away"):
        publish(target, "2", overwrite=True)
    (target / "known").unlink()
    with pytest.raises(ArtifactError, match=r"other contents \('sub/deep', and no known\)"):
        publish(target, "2", overwrite=True)
    with pytest.raises(ArtifactError, match="is a file"):
        publish(thesis, "2", overwrite=True)
    assert thesis.read_text() == "years" and names(tmp_path) == ["folder"]


def test_a_link_in_a_folder_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "deep").write_text("years")
    publish(tmp_path / "folder", "1")
    (tmp_path / "folder" / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="'linked', which would be lost"):
        publish(tmp_path / "folder", "2", overwrite=True)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "deep").symlink_to(tmp_path / "elsewhere" / "deep")
    remove_made(tmp_path / "made", ("*",))
    (tmp_path / "also").symlink_to(tmp_path / "elsewhere")
    remove_made(tmp_path / "also", ("*",))
    assert (tmp_path / "elsewhere" / "deep").read_text() == "years"
    assert names(tmp_path / "made") == ["deep"]


def test_a_failure_rolls_back(tmp_path, way, monkeypatch):
    target = tmp_path / "folder"
    publish(target, "1")
    rename = os.rename

    def failing(old, new):
        if new == target and ".previous" not in str(old):
            raise OSError(5, "Input/output error")
        rename(old, new)

    def exchange(one, other):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", failing)
        if way == "exchange":
            patch.setattr(folders, "_exchange", exchange)
        with pytest.raises(ArtifactError, match="Input/output error; existing files are unchanged"):
            publish(target, "2", overwrite=True)
    assert (target / "known").read_text() == "1" and names(tmp_path) == ["folder"]


def test_what_killed_processes_left_is_put_right(tmp_path):
    target = tmp_path / "folder"
    publish(target, "1")
    os.rename(target, temporary_next_to(target, "previous"))  # killed between two renames
    unfinished = temporary_next_to(target)
    unfinished.mkdir()
    (unfinished / "known").write_text("half")
    users = tmp_path / ".folder.mine.partial"
    users.mkdir()
    assert (whole_folder(target) / "known").read_text() == "1"
    with pytest.raises(ArtifactError, match="already exists"):
        publish(target, "2")
    assert names(tmp_path) == [users.name, "folder"] and (target / "known").read_text() == "1"
    assert whole_folder(target) == target


def test_what_a_living_process_makes_is_left_to_it(tmp_path):
    with (
        pytest.raises(ArtifactError, match="not empty; existing files are unchanged"),
        publish_folder(tmp_path / "folder") as first,
    ):
        (first / "known").write_text("slow")
        publish(tmp_path / "folder", "fast")
        assert (first / "known").read_text() == "slow"
    assert (tmp_path / "folder" / "known").read_text() == "fast" and names(tmp_path) == ["folder"]

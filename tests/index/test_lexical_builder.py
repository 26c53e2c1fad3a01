import numpy as np
import pytest
from tests.index.test_lexical import TEXTS

from counterpoint.index import Index, IndexSettings, build_index, lexical_builder
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.types import Document

WORDS = [f"word{i}" for i in range(300)]


def texts(count=200):
    rng = np.random.default_rng(5)
    return [*TEXTS, *(" ".join(rng.choice(WORDS, rng.integers(0, 40))) for _ in range(count))]


def written(folder, memory=None, spill=None):
    more = {} if memory is None else {"memory": memory}
    builder = LexicalBuilder(LexicalSettings(), spill, **more)
    for text in texts():
        builder.add(text)
    builder.write(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("memory", [0, 1_000, 30_000, 200_000])
def test_a_bound_changes_no_byte_and_leaves_no_file(tmp_path, memory):
    (tmp_path / "spill").mkdir()
    whole = written(tmp_path / "whole")
    assert written(tmp_path / "bounded", memory, tmp_path / "spill") == whole
    assert not list((tmp_path / "spill").iterdir())
    assert written(tmp_path / "elsewhere", memory) == whole


def test_runs_are_written_where_the_files_will_be(tmp_path):
    builder = LexicalBuilder(LexicalSettings(), tmp_path, memory=1_000)
    most = 0
    for text in texts():
        builder.add(text)
        most = max(most, len(builder._tokens))
    assert most < 100 and len(list(tmp_path.glob("run*.npy"))) > 60
    builder.write(tmp_path)
    assert not list(tmp_path.glob("run*.npy"))
    assert Lexical([(CheckedFolder(tmp_path), None)], LexicalSettings()).documents == len(texts())


def test_an_index_that_spilled_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(lexical_builder.LexicalBuilder.__init__, "__defaults__", (None, 2_000))
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts())]
    build_index(documents, None, tmp_path / "i", IndexSettings(lexical=LexicalSettings()))
    with Index(tmp_path / "i") as index:
        assert index.manifest.faults(tmp_path / "i") == []
        assert not [name for name in index.manifest.files if "run" in name]
        assert index.lexical is not None and index.lexical.scores("fox")[0] > 0


def test_a_build_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(lexical_builder.LexicalBuilder.__init__, "__defaults__", (None, 2_000))

    def documents():
        for i, text in enumerate(texts()):
            yield Document(f"d{i}", text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(documents(), None, tmp_path / "i")
    assert not (tmp_path / "i").exists()

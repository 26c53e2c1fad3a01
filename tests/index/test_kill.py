"""`kill -9` at random moments of a build leaves the old index, the new one, or nothing that opens."""

import multiprocessing
import random
import time

import pytest
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, build_index, stream
from counterpoint.types import Document

OLD = [Document(f"old{i}", f"an old text about {i}") for i in range(7)]
NEW = [Document(f"new{i}", f"a new text about {i} and word{i % 31}") for i in range(600)]


def work(folder):
    stream.BATCH = 25  # many small steps, so that kills fall between and inside them
    build_index(NEW, HashModel(), folder, overwrite=True)


@pytest.fixture(scope="module")
def processes():
    """Children forked from a server that has imported everything: they start in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes", "tests.index.test_kill", "bm25s"])
    return context


@pytest.mark.parametrize("kills", [3, pytest.param(25, marks=pytest.mark.long)])
@pytest.mark.parametrize("replacing", [False, True])
def test_a_killed_build_leaves_the_old_state(tmp_path, processes, replacing, kills):
    whole = processes.Process(target=work, args=(tmp_path / "warm-up",))
    whole.start()
    whole.join()
    started = time.perf_counter()
    whole = processes.Process(target=work, args=(tmp_path / "measured",))
    whole.start()
    whole.join()
    duration = time.perf_counter() - started
    assert whole.exitcode == 0
    outcomes = {"old": 0, "new": 0, "nothing": 0}
    rng = random.Random(7)
    for i in range(kills):
        folder = tmp_path / str(i)
        if replacing:
            build_index(OLD, HashModel(), folder)
        child = processes.Process(target=work, args=(folder,))
        child.start()
        time.sleep(duration * (i + rng.random()) / kills)  # early, late and between
        child.kill()
        child.join()
        outcomes[state(folder)] += 1
        build_index(NEW, HashModel(), folder, overwrite=True)  # what was left is no obstacle
        assert state(folder) == "new"
        assert len(list((folder / "segments").iterdir())) == 1
    assert outcomes["nothing" if replacing else "old"] == 0
    assert outcomes["old" if replacing else "nothing"] > 0, (
        "no kill came before the commit; the test tests nothing"
    )


def state(folder):
    try:
        with Index(folder) as index:
            assert index.manifest.faults(folder) == []
            found = {index.name_of(i) for i in range(len(index))}
    except ArtifactError:
        return "nothing"
    assert found in ({d.id for d in OLD}, {d.id for d in NEW})
    return "old" if len(found) == len(OLD) else "new"

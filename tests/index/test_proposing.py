"""From centroids to candidates: numpy against loops, and the compiled kernels against numpy."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.index import proposing
from counterpoint.index.packing import pack

compiled = pytest.importorskip("counterpoint.index.compiled.proposing")


def gathered_by_loops(levels, probes, lists, documents):
    total = [0] * documents
    for m, centroids in enumerate(probes):
        least = int(levels[centroids[-1], m])
        for document in range(documents):
            mine = [int(levels[c, m]) for c in centroids if document in lists[c]]
            total[document] += max(mine, default=least) - least
    return total


def interactions_by_loops(levels, places, firsts, lasts):
    return [
        sum(
            max((int(levels[places[row], m]) for row in range(first, last)), default=0)
            for m in range(levels.shape[1])
        )
        for first, last in zip(firsts, lasts, strict=True)
    ]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    centroids=st.integers(1, 70),
    rows=st.integers(1, 40),
    documents=st.integers(1, 90),
    count=st.integers(1, 9),
    kind=st.sampled_from(["normal", "zeros", "ties", "negative", "huge"]),
)
@example(seed=1, centroids=1, rows=1, documents=1, count=1, kind="zeros")
@example(seed=2, centroids=20, rows=17, documents=30, count=5, kind="negative")
def test_numpy_and_the_kernels_agree_with_loops(seed, centroids, rows, documents, count, kind):
    rng = np.random.default_rng(seed)
    similarity = {
        "normal": rng.normal(size=(centroids, rows)),
        "zeros": np.zeros((centroids, rows)),
        "ties": rng.integers(0, 3, (centroids, rows)),
        "negative": -rng.random((centroids, rows)),
        "huge": rng.normal(size=(centroids, rows)) * 1e30,
    }[kind].astype(np.float32)
    top, count = similarity.max(), min(count, centroids)
    probes, levels = proposing.probed(similarity, count), proposing.levels_of(similarity, top)
    for m in range(rows):
        assert probes[m].tolist() == sorted(range(centroids), key=lambda c: (-similarity[c, m], c))[:count]
    assert (levels[similarity <= 0] == 0).all()
    assert top <= 0 or levels.max() == 255

    lengths = rng.integers(0, 6, documents)
    places = rng.integers(0, centroids, lengths.sum()).astype(np.uint16)
    owners = np.repeat(np.arange(documents), lengths)
    lists = [np.unique(owners[places == c]) for c in range(centroids)]
    found = proposing.gathered(levels, probes, lists.__getitem__, documents)
    assert found.tolist() == gathered_by_loops(levels, probes, [set(x.tolist()) for x in lists], documents)
    some = rng.permutation(documents)[: documents // 2 + 1]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    firsts, lasts = offsets[some], offsets[some + 1]
    closer = proposing.interactions(levels, places, firsts, lasts)
    assert closer.tolist() == interactions_by_loops(levels, places, firsts, lasts)

    lanes = -(-rows // 16) * 16
    bases, scales = np.zeros((centroids, lanes), np.float32), np.zeros(lanes, np.float32)
    bases[:, :rows], scales[:rows] = similarity, 1
    chosen, greatest = compiled.probed(bases, scales, rows, count)
    assert chosen.tolist() == probes.tolist() and greatest == top
    wide = compiled.levels_of(bases, scales, top)
    assert wide[:, :rows].tolist() == levels.tolist() and not wide[:, rows:].any()
    assert compiled.gathered(wide, probes, packed(lists), documents).tolist() == found.tolist()
    assert compiled.interactions(wide, places, firsts, lasts).tolist() == closer.tolist()


def packed(lists):
    filled = [i for i, each in enumerate(lists) if len(each)]
    counts, sizes = np.array([len(each) for each in lists]), np.zeros(len(lists), np.int64)
    content = np.zeros(0, np.uint8)
    if filled:
        gaps = [np.diff(lists[i], prepend=-1) - 1 for i in filled]
        content, sizes[filled] = pack(np.concatenate(gaps), counts[filled])
    return content, counts, np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("apart", [1, 2, 4, 15, 200, 60_000])
def test_lists_of_every_width_are_read(apart):
    rng = np.random.default_rng(apart)
    lists = [np.cumsum(rng.integers(1, apart + 1, 40)), np.array([3, 4_000_000]), np.arange(500)]
    levels = np.zeros((3, 16), np.uint8)
    levels[:, 0] = 9, 7, 5
    levels = np.concatenate([levels, np.zeros((1, 16), np.uint8)])
    probes, documents = np.array([[0, 1, 2, 3]]), 4_100_000
    found = compiled.gathered(levels, probes, packed([*lists, np.zeros(0, np.int64)]), documents)
    wanted = proposing.gathered(levels, probes, [*lists, np.zeros(0, np.int64)].__getitem__, documents)
    assert (found == wanted).all() and wanted.any()

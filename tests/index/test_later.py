"""Which documents a fit has seen, by their ids."""

import numpy as np
import pytest
from tests.fakes import HashModel
from tests.index.test_changing import as_format
from tests.index.test_compacting import changed

from counterpoint.index import Index, IndexSettings, build_index, merge_rule
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.index.disk_usage import fit_text
from counterpoint.index.later import seen_and_later, seen_and_later_counts
from counterpoint.index.sharding import divide
from counterpoint.types import Document

LIVE = [i for i in range(90) if i % 7 or i >= 80]  # what `changed` leaves; 60 documents were fitted


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(merge_rule, "ENOUGH", 12)


def split(index):
    """The numbers of the seen and of the later documents."""
    found = [[], []]
    whole = seen_and_later(index.segments)
    assert seen_and_later_counts(index.segments) == tuple(sum(len(each[i]) for each in whole) for i in (0, 1))
    for segment, kinds in zip(index.segments, whole, strict=True):
        for kind, rows in zip(found, kinds, strict=True):
            kind += [int(name[1:]) for name in segment.database.names(rows.tolist())]
    return [sorted(kind) for kind in found]


@pytest.mark.parametrize("compacted", [False, True], ids=["waiting", "encoded"])
def test_documents_of_other_segments_were_added_later(tmp_path, compacted):
    index, _ = changed(tmp_path / "i", "2-bit")
    if compacted:
        compact(index)
    now = index.refreshed()
    assert len(now.segments) == (2 if compacted else 11)
    seen, later = split(now)
    assert seen == [i for i in LIVE if i < 60] and later == [i for i in LIVE if i >= 60]
    waiting = 0 if compacted else 27
    assert now.info()["fit"] == {"seen": 51, "later": 27, "waiting": waiting, "due": False}


def test_in_one_segment_the_first_were_seen_whatever_is_deleted_then(tmp_path):
    index, _ = changed(tmp_path / "i", "2-bit")
    compact(index, everything=True)
    seen, later = split(index.refreshed())
    assert (seen, later) == (LIVE[:60], LIVE[60:])  # 9 that were deleted before are no longer known
    with changing(index.refreshed()) as change:
        change.delete([f"d{i}" for i in LIVE[::2]])
    assert split(index.refreshed()) == [LIVE[1:60:2], LIVE[61::2]]


def test_shards_are_split_by_the_order_of_adding(tmp_path):
    index, _ = changed(tmp_path / "i", "2-bit")
    compact(index, everything=True)
    for shards in (3, 2, 1):
        divide(index.refreshed(), shards)
        assert split(index.refreshed()) == [LIVE[:60], LIVE[60:]]


def test_the_segment_of_an_older_format_has_seen_all_of_it(tmp_path):
    documents = [Document(f"d{i}", f"text {i % 5}") for i in range(20)]
    build_index(documents[:15], HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"))
    as_format(tmp_path / "i", 4)
    index = Index(tmp_path / "i")
    assert index.info()["fit"] == {"seen": 15, "later": 0, "waiting": 0, "due": False}
    with changing(index, HashModel()) as change:
        change.add(documents[15:])
    now = index.refreshed()
    assert split(now) == [list(range(15)), list(range(15, 20))]
    assert fit_text(now.info()) == (
        "means or centroids were fitted to 15 documents; 5 were added later, of which 5 are kept in 8 bits"
    )


def test_without_documents(tmp_path):
    build_index([Document("d0", "x")], HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"))
    index = Index(tmp_path / "i")
    with changing(index) as change:
        change.delete(["d0"])
    ((seen, later),) = seen_and_later(index.refreshed().segments)
    assert len(seen) == len(later) == 0 and np.issubdtype(seen.dtype, np.integer)

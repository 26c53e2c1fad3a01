"""Which segments are merged: few are left, none is written often, and kinds stay apart."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.merge_rule import ENOUGH, RUN, all_due, due


def segment(documents, deleted=0, fit=None, fresh=False, fitted=0):
    codecs = {"words": "int8"} if fresh else {}
    return SegmentEntry("s", documents, {}, deleted=deleted, codecs=codecs, fit=fit, fitted=fitted)


def merged(segments, merge, number):
    """What a compaction makes of it."""
    some = segments[merge.first : merge.end]
    live = sum(each.live for each in some)
    if not merge.codes:
        one = segment(live, fit=some[0].fit, fresh=bool(some[0].codecs), fitted=some[0].fitted)
    elif merge.fit is None:
        one = segment(live, fit=f"fit{number}", fitted=live)
    else:
        one = segment(live, fit=merge.fit, fitted=next(x.fitted for x in segments if x.fit == merge.fit))
    return [*segments[: merge.first], one, *segments[merge.end :]]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), fresh=st.booleans(), first=st.sampled_from([3, 500, 20_000]))
def test_segments_and_writes_stay_few(seed, fresh, first):
    rng = random.Random(seed)
    segments, added, written = [segment(first, fit="fit" if fresh else None, fitted=first)], first, 0
    sizes = rng.choice([(1, 1), (1, 9), (100, 100), (1, 3000)])
    for number in range(300):
        size = rng.randint(*sizes)
        segments, added = [*segments, segment(size, fresh=fresh)], added + size
        while (merge := due(segments)) is not None:
            some = segments[merge.first : merge.end]
            assert len({(each.fit, bool(each.codecs)) for each in some}) == 1
            written += sum(each.live for each in some)
            segments = merged(segments, merge, number)
        classes = 2 + math.log(added, RUN)
        fits = len({each.fit for each in segments})
        assert len(segments) <= RUN * classes * max(1, fits)
        assert fits <= 3 + math.log2(added)
    assert sum(each.live for each in segments) == added
    assert written <= RUN * added * (1 + math.log(added, RUN))


@pytest.mark.parametrize("size", [1, 5, 100])
def test_documents_of_equal_commits_are_written_once_a_class(size):
    segments, written = [segment(100_000)], 0
    for _ in range(512):
        segments.append(segment(size))
        while (merge := due(segments)) is not None:
            assert merge.first > 0
            written += sum(each.live for each in segments[merge.first : merge.end])
            segments = merged(segments, merge, 0)
    assert written == 512 * size * 3  # of 8, of 64, of 512
    assert len(segments) == 2


def test_eight_of_a_size_become_one_and_seven_do_not():
    assert due([segment(100), *[segment(1)] * 7]) is None
    merge = due([segment(100), *[segment(1)] * 8])
    assert merge is not None and (merge.first, merge.end, merge.codes) == (1, 9, False)


def test_a_segment_that_is_half_deleted_is_written_again():
    assert due([segment(10, deleted=4)]) is None
    merge = due([segment(10), segment(10, deleted=5)])
    assert merge is not None and (merge.first, merge.end) == (1, 2)
    assert due([segment(10, deleted=10)]) is None  # nothing would be left


@pytest.mark.parametrize("fitted, fit, first", [(ENOUGH - 1, None, 1), (10 * ENOUGH, "a", 0)])
def test_enough_fresh_documents_are_coded(fitted, fit, first):
    """And are written in one go with the neighbours whose fit they take."""
    base = segment(fitted, fit="a", fitted=fitted)
    few = all_due([base, segment(ENOUGH // 2, fresh=True), segment(1, fresh=True)])
    assert few is not None and not few.codes
    merge = all_due([base, segment(ENOUGH // 2, fresh=True), segment(ENOUGH // 2, fresh=True)])
    assert merge is not None and (merge.first, merge.end, merge.codes, merge.fit) == (first, 3, True, fit)


def test_what_is_compact_stays():
    assert all_due([segment(10)]) is None
    assert all_due([segment(10, fit="a"), segment(20, fit="b"), segment(5, fresh=True)]) is None
    assert all_due([segment(10, fit="a"), segment(20, fit="a")]) is not None


def test_by_command_no_document_is_written_twice_where_fits_allow():
    some = [segment(5000, 9, "a", fitted=5000), segment(900, fresh=True), segment(900, 3, fresh=True)]
    for segments in (some, [segment(7, fit="b"), *some], [*some, segment(50, fit="a", fitted=5000)]):
        merge = all_due(segments)
        assert merge is not None and merge.fit == "a"
        rest = merged(segments, merge, 0)
        assert [each.fit for each in rest] == (["b", "a"] if segments[0].fit == "b" else ["a"])
        assert all_due(rest) is None

"""Tables of what runs answer together: numbers by hand, nothing where nothing is defined."""

from counterpoint.measure import (
    Slicing,
    WinTieLoss,
    as_latex,
    as_markdown,
    means_over,
    share_of,
    shared_tables,
    slices_table,
    wins_table,
)
from counterpoint.measure.complements import answered_header, answered_rows
from counterpoint.search import Run

QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"x": 1}, "q3": {"y": 1}, "q4": {"z": 1}}
RUNS = {
    "d": Run({"q1": {"a": 2.0, "b": 1.0}, "q2": {"x": 1.0}}),
    "s": Run({"q1": {"a": 1.0}, "q3": {"y": 1.0}}),
    "e": Run({"q1": {"c": 1.0}}),
}


def texts(table):
    return [[cell.text for cell in row] for row in table.cells()]


def test_tables_by_hand():
    """d answers q1 and q2, s answers q1 and q3, e nothing; q4 nobody."""
    sets, pairs = shared_tables("c", share_of(RUNS, QRELS, 2), False, None)
    assert texts(sets) == [
        ["d", "2", "0.5000", "1", "3", "2", "0.5000"],
        ["s", "2", "0.5000", "1", "2", "1", "0.3750"],
        ["e", "0", "0.0000", "0", "0", "0", "0.0000"],
        ["union", "3", "0.7500", "2", "4", "3", "0.7500"],
    ]
    assert "1 of 4 queries (25.0%) are answered by none." in sets.notes
    assert texts(pairs) == [
        ["d vs s", "2", "1", "1", "3", "1", "0.5000", "0.6667"],
        ["d vs e", "2", "2", "0", "2", "2", "1.0000", "1.0000"],
        ["s vs d", "2", "1", "1", "3", "1", "0.5000", "0.5000"],
        ["s vs e", "2", "2", "0", "2", "2", "1.0000", "1.0000"],
        ["e vs d", "0", "0", "0", "2", "2", "–", "–"],
        ["e vs s", "0", "0", "0", "2", "2", "–", "–"],
    ]
    assert r"$\cap$" in as_latex(pairs) and r"\|D ∩ S\|" in as_markdown(pairs)


def test_pairs_with_the_baseline_only_and_answers_without_recall():
    shared = share_of(RUNS, QRELS, 2)
    sets, pairs = shared_tables("c", shared, True, "e")
    assert sets.header == ("run", "answered", "hit rate", "alone", "relevant", "alone")
    assert "an answer among its first 2" in sets.notes[0]
    assert [row[0] for row in texts(pairs)] == ["d vs e", "s vs e", "e vs d", "e vs s"]


def test_rows_a_query():
    names = ["d", "s", "more"]
    header = answered_header(names)
    rows = answered_rows(share_of({name: RUNS[name] for name in "ds"}, QRELS, 2).per_query, names)
    assert list(rows) == list(QRELS)
    found = dict(zip(header, rows["q1"], strict=True))
    assert (found["relevant"], found["answered by"], found["d"], found["s"], found["d ∩ s"]) == (
        2,
        "d s",
        2,
        1,
        1,
    )
    assert (found["RoC d vs s"], found["RoC s vs d"]) == (0.5, 0)
    assert found["more"] == found["d ∩ more"] == found["RoC more vs d"] == ""
    found = dict(zip(header, rows["q4"], strict=True))
    assert (found["answered by"], found["d"], found["RoC d vs s"]) == ("", 0, "")


def test_parts_and_wins():
    slicing = Slicing("halves", {"easy": ("q1",), "hard": ("q2", "q3")}, "where it fell")
    systems = {"d": {"q1": 1.0, "q2": 0.5, "q3": 0.0}, "s": {"q1": 1.0, "q2": 0.0, "q3": 0.0}}
    table = slices_table("t", "half", slicing.slices, means_over(systems, slicing.slices), slicing.note)
    assert texts(table) == [["easy", "1", "1.0000", "1.0000"], ["hard", "2", "0.2500", "0.0000"]]
    assert [[cell.best for cell in row[2:]] for row in table.cells()] == [[True, True], [True, False]]
    assert table.header == ("half", "queries", "d", "s") and table.notes == ("where it fell",)
    table = wins_table("t", "s", {"d": {"hard": WinTieLoss(1, 2, 1)}})
    assert texts(table) == [["d", "hard", "4", "25.0%", "50.0%", "25.0%"]]

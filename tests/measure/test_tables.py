"""Tables in three forms, and what the tables of comparisons say."""

import pytest

from counterpoint.measure import (
    Cell,
    CompareSettings,
    Table,
    as_latex,
    as_markdown,
    as_text,
    compare,
    comparison_tables,
    synthesise,
)
from counterpoint.measure.compared import letters

TABLE = Table(
    "Scores of a_b",
    ("system", "nDCG@10"),
    [["a one", Cell("0.5", "b", best=True)], ["b |two|", "0.25"]],
    ("Note: p < 0.05 & more.",),
)


def test_text_is_aligned():
    assert as_text(TABLE) == (
        "Scores of a_b\n\n  system   nDCG@10\n  a one      0.5 b\n  b |two|   0.25\n\n"
        "  Note: p < 0.05 & more."
    )


def test_markdown_escapes_and_marks():
    assert as_markdown(TABLE) == (
        "**Scores of a_b**\n\n| system | nDCG@10 |\n| --- | ---: |\n| a one | **0.5**<sup>b</sup> |\n"
        "| b \\|two\\| | 0.25 |\n\nNote: p < 0.05 & more."
    )


def test_latex_escapes_and_marks():
    assert as_latex(TABLE).splitlines() == [
        r"\begin{table}",
        r"\caption{Scores of a\_b. Note: p \textless{} 0.05 \& more.}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"system & nDCG@10 \\",
        r"\midrule",
        r"a one & \textbf{0.5}$^{b}$ \\",
        r"b \textbar{}two\textbar{} & 0.25 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_letters_go_on_after_z():
    names = letters([str(at) for at in range(30)])
    assert [names["0"], names["25"], names["26"], names["29"]] == ["a", "z", "aa", "ad"]


def made(collection, systems, settings=None):
    runs = {name: [{f"q{at}": value for at, value in enumerate(values)}] for name, values in systems.items()}
    return compare(collection, "P@1", runs, settings)


SYSTEMS = {"bad": [0.1, 0.2, 0.1, 0.3, 0.2], "good": [0.7, 0.8, 0.6, 0.9, 0.8]}


def test_the_first_table_shows_means_and_letters():
    table = comparison_tables([made("c", SYSTEMS)])[0]
    assert table.title == "Effectiveness on c"
    assert table.rows == [
        ["a bad", Cell("0.1800")],
        ["b good", Cell("0.7600", "a", best=True)],
    ]
    assert "two-sided paired t-test, Holm, p < 0.05; all pairs" in table.notes[0]


def test_a_system_that_is_not_everywhere_has_a_dash():
    other = made("d", {"bad": SYSTEMS["bad"], "third": SYSTEMS["good"]})
    table = comparison_tables([made("c", SYSTEMS), other])[0]
    assert table.header == ("system", "c P@1", "d P@1")
    assert [row[2] if isinstance(row[2], str) else row[2].text for row in table.rows] == [
        "0.1800", "–", "0.7600",
    ]  # fmt: skip


def test_the_table_of_pairs():
    table = comparison_tables([made("c", SYSTEMS, CompareSettings(correction="none"))])[1]
    (row,) = table.rows
    assert table.title == "P@1 on c, 5 queries"
    assert row[0] == "good − bad" and row[1] == "+0.5800" and row[-1] == "5/0/0"
    assert "not corrected" in table.notes[0]


def test_an_undefined_effect_is_said_to_be_undefined():
    table = comparison_tables([made("c", {"x": [1, 2, 3], "y": [1, 2, 3]})])[1]
    assert table.rows[0][5] == "–"
    assert (
        table.notes[1] == "No effect is defined for y − x: the systems differ by one constant, or not at all."
    )


def test_the_table_of_a_synthesis():
    comparisons = [made("c", SYSTEMS), made("d", SYSTEMS)]
    table = comparison_tables(comparisons, synthesise(comparisons))[-1]
    assert table.title == "good − bad over collections, P@1"
    assert [row[0] for row in table.rows] == ["c", "d", "summary effect"]
    assert [row[-1] for row in table.rows] == ["50.0%", "50.0%", "100.0%"]
    assert table.rows[-1][1] == "10" and table.rows[0][2:4] == ["0.1800", "0.7600"]
    assert "Q = 0.000 (p 1.0000), τ² = 0.0000, I² = 0%" in table.notes[1]


@pytest.mark.parametrize("form", [as_text, as_markdown, as_latex])
def test_every_table_of_a_comparison_has_every_form(form):
    comparisons = [made("c_1", SYSTEMS), made("d&e", SYSTEMS)]
    for table in comparison_tables(comparisons, synthesise(comparisons)):
        assert form(table).count("good") >= 1


@pytest.mark.parametrize("write", [as_text, as_markdown, as_latex])
def test_a_name_stays_in_its_line(write):
    evil = "\x1b]52;c;a\x07\n\u202e\x9b"
    table = Table(evil, ("run", evil), [[evil, Cell("0.5", best=True)]], (evil,))
    plain = Table("title", ("run", "name"), [["name", Cell("0.5", best=True)]], ("note",))
    shown = write(table)
    assert not set(shown) & set("\x1b\x07\u202e\x9b")
    assert shown.count("\n") == write(plain).count("\n")

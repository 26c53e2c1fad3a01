"""What is made from recent texts is made once, for as long as it is kept."""

from counterpoint.recent import LONGEST, Recent


def test_what_is_kept_is_not_made_again():
    made, recent = [], Recent(2)

    def make(texts):
        made.extend(texts)
        return [text.upper() for text in texts]

    for text in ("a", "b", "a", "c", "a", "b"):
        assert recent.each([text], make) == [text.upper()]
    assert made == ["a", "b", "c", "b"]
    assert recent.each(["a", "d", "a"], make) == ["A", "D", "A"]


def test_kinds_are_kept_apart_and_long_texts_are_not_kept():
    recent, long = Recent(5), "x" * (LONGEST + 1)
    assert recent.each(["a"], lambda texts: [1], kind="one") == [1]
    assert recent.each(["a"], lambda texts: [2], kind="other") == [2]
    assert recent.each(["a"], lambda texts: [3], kind="one") == [1]
    assert recent.each([long], lambda texts: [1]) == [1]
    assert recent.each([long], lambda texts: [2]) == [2]

"""A picture goes out as a file in three formats, or as SVG, and the same picture is the same file."""

import builtins
import warnings
from xml.etree import ElementTree

import pytest
from matplotlib.artist import Artist

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.plots import picture


def drawn():
    made = picture(3, 2)
    made.axes.plot([0, 1], [1, 0])
    return made


@pytest.mark.parametrize(("name", "magic"), [("p.svg", b"<?xml"), ("p.png", b"\x89PNG"), ("p.pdf", b"%PDF")])
def test_saved_by_its_ending(tmp_path, name, magic):
    drawn().save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_equal_pictures_are_equal_files(tmp_path):
    for name in ("a.svg", "b.svg"):
        drawn().save(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_svg_is_an_element_and_nothing_else():
    text = drawn().svg()
    assert text.startswith("<svg") and text.rstrip().endswith("</svg>")
    assert "<!DOCTYPE" not in text and "<?xml" not in text


def test_an_unknown_ending_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ConfigError, match=r"\.svg, \.png, \.pdf, found 'p.gif'"):
        drawn().save(tmp_path / "p.gif")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["p.svg", "p.png", "p.pdf"])
def test_names_are_drawn_letter_by_letter(tmp_path, name):
    """A dollar begins no formula, and what the font lacks is drawn as a box without a warning."""
    made = picture(3, 2)
    made.axes.set_title("a$^$ \\$ 中文")
    made.axes.set_yticks([0, 1], ["$_$", "文"])
    made.axes.plot([0, 1], [1, 0], label="$$")
    made.axes.legend()
    made.save(tmp_path / name)
    assert not made.axes.title.get_parse_math()


def test_other_warnings_are_not_swallowed(tmp_path):
    made = drawn()
    made.figure.add_artist(Warns())
    with pytest.warns(UserWarning, match="something else"):
        made.svg()


class Warns(Artist):
    """What warns while it is drawn."""

    def draw(self, renderer):
        warnings.warn("something else", stacklevel=1)


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[plot\]'"):
        picture(1, 1)


@pytest.mark.parametrize("name", ["\x1b]52;c;a\x07", "\x00", "\ud800", "a\u202eb", "a--b"])
def test_any_name_can_be_drawn(tmp_path, name):
    """XML has no controls, matplotlib no lone surrogates, and a reversed name would be another one."""
    made = drawn()
    made.axes.set_title(name)
    made.axes.set_xticks([0, 1], [name, "b"])
    made.axes.plot([0, 1], [0, 1], label=name)
    made.axes.legend()
    for form in ("svg", "png", "pdf"):
        made.save(tmp_path / f"p.{form}")
    text = "".join(ElementTree.parse(tmp_path / "p.svg").getroot().itertext())
    assert "\u202e" not in text

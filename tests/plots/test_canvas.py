"""A picture goes out as a file in three formats, or as SVG, and the same picture is the same file."""

import builtins

import pytest

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


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'counterpoint-ir\[plot\]'"):
        picture(1, 1)

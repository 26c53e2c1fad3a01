import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data.markup import from_html, from_markdown, from_rst

MARKDOWN = """---
title: "From the front"
---
# First *title*

Some **bold** text with a [link](http://example.org) and `code`,
on two lines. ![picture](p.png) &amp; done.<br>

- item one
- item two

  more of two

## Second

| a | b |
|---|---|
| 1 | 2 |

```python
x = 1

y = 2
```
<div><script>no()</script>Inside <b>HTML</b></div>
"""


def test_markdown():
    found = from_markdown(MARKDOWN)
    assert found.title == "From the front"
    assert found.text == (
        "First title\n\nSome bold text with a link and code,\non two lines. picture & done.\n\n"
        "- item one\n\n- item two\n\nmore of two\n\nSecond\n\na b\n1 2\n\nx = 1\n\ny = 2\n\nInside HTML"
    )
    assert [heading for _, heading in found.headings] == ["First title", "Second"]


def test_markdown_of_a_tight_list_and_without_headings():
    found = from_markdown("Plain.\n\n* one\n* two\n\nEnd.")
    assert (found.text, found.title, found.headings) == ("Plain.\n\n- one\n- two\n\nEnd.", "", [])


HTML = """<!DOCTYPE html><html><head><title> The  Page </title><style>p {}</style></head><body>
<nav><a href="/">Home</a></nav><!-- comment --><h1>Top <em>line</em></h1>
<p>Some <b>bold</b>,
 and<br>a break.</p><ul><li>one</li><li><p>two</p></li></ul>
<table><tr><td>1</td><td>2</td></tr></table>
<pre>
def f():
    <span>return</span> 1
</pre><script>alert("no")</script><h2></h2>Loose &lt;text&gt;</body></html>"""


def test_html():
    found = from_html(HTML)
    assert found.title == "The Page"
    assert found.text == (
        "Top line\n\nSome bold, and\na break.\n\n- one\n- two\n\n1 2\n\n"
        "def f():\n    return 1\n\n\nLoose <text>"
    )
    assert found.headings == [(0, "Top line")]


def test_html_that_is_not_well_formed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_html('<?xml version="1.0"?><p>a<p>b</i>').text == "a\n\nb"
        assert from_html("file.html").text == "file.html"
        assert from_html("").text == ""
        assert from_html("<div>" * 20_000 + "deep").text == "deep"


def test_rst():
    found = from_rst("Title\n=====\n\nText.\n\nPart two\n--------\n\nMore\n--\n\nLonger\n---\n")
    assert (found.title, found.headings) == ("Title", [(0, "Title"), (20, "Part two")])
    assert found.text[20:].startswith("Part two")


@pytest.mark.parametrize("read", [from_markdown, from_html, from_rst])
@settings(deadline=None)
@given(
    source=st.lists(st.sampled_from("# ab\n<h1>|</h1>|\n===\n|- |<p>|<li>|`|\n\n|x y|<td>|&".split("|"))).map(
        "".join
    )
)
def test_headings_stand_where_they_are_said_to(read, source):
    found = read(source)
    for at, heading in found.headings:
        assert found.text[at : at + len(heading)] == heading

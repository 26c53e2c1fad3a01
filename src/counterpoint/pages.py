"""Render this package's page templates with Jinja2; all values are escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.escapes import html_text

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render"]

TEMPLATES = Path(__file__).parent / "resources" / "templates"


def render(template: str, **values: Any) -> str:
    """Render a template by name; all its variables must be given.

    Text is escaped, including control and bidirectional characters, unless it is `markupsafe.Markup`.
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else Markup(html_text(str(value))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

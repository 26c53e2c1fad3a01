"""Which version of Counterpoint this is."""

from functools import cache

__all__ = ["version"]


@cache
def version() -> str:
    """Of the installed package; "0+unknown" when run from a source tree that was never installed."""
    from importlib import metadata  # a tenth of what a short command costs

    try:
        return metadata.version("counterpoint-ir")
    except metadata.PackageNotFoundError:
        return "0+unknown"

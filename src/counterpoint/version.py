"""The version of Counterpoint."""

from functools import cache

__all__ = ["version"]


@cache
def version() -> str:
    """Version of the installed package; "0+unknown" for a source tree that was never installed."""
    from importlib import metadata  # imported here: takes a tenth of the time of a short command

    try:
        return metadata.version("counterpoint-ir")
    except metadata.PackageNotFoundError:
        return "0+unknown"

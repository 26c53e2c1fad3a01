"""Counterpoint: neural retrieval whose parts complement each other."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("counterpoint-ir")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]

"""The collection of the commands' tests, and a way to call commands."""

from tests.cli.conftest import call, collection

__all__ = ["call", "collection"]

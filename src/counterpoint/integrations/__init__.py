"""Adapters of our models to other libraries, each an optional extra that is loaded on use."""

from counterpoint.integrations.mteb import MtebEncoder, MtebSearch

__all__ = ["MtebEncoder", "MtebSearch"]

"""Losses, grouped by purpose. Add a new one to the file where it fits, and to `learn.__all__`."""

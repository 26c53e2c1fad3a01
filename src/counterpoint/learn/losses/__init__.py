"""Losses, by what they are for. A new one goes into the file it belongs to, and into `learn.__all__`."""

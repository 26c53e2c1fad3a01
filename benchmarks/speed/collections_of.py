"""The collection in a folder, whichever kind it is. Needs numpy alone."""

from pathlib import Path

from synthetic import BASE, Synthetic
from vector_files import TokenFiles


def files_of(folder: Path, documents: int) -> TokenFiles | Synthetic:
    """The first documents of a folder that `engine.py` made; 0 for all of them."""
    if (folder / BASE).exists():
        return Synthetic(folder, documents)
    return TokenFiles(folder, documents)

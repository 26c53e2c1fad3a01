"""Maps of a collection's words that were not fitted on it: what `--maps FOLDER` reads.

`benchmarks.default.fit --leave-out FOLDER` writes FOLDER/NAME.safetensors. A collection without such a file
keeps the model's own map, and stderr says for each which one it has.
"""

import sys
from pathlib import Path

from safetensors.torch import load_file

__all__ = ["add_maps", "check_maps", "take_map"]


def add_maps(parser):
    """Add `--maps`."""
    parser.add_argument("--maps", type=Path, metavar="FOLDER", help="maps of the words, by collection")


def check_maps(folder):
    """Exit if a folder was named and has no maps."""
    if folder is not None and not any(folder.glob("*.safetensors")):
        sys.exit(f"--maps {folder}: no maps there; write them with benchmarks.default.fit --leave-out")


def take_map(folder, name, model):
    """Give a model the map of a collection, if a folder was named and has one."""
    if folder is None:
        return
    path = folder / f"{name}.safetensors"
    if path.is_file():
        model.steps("words")[0].load_state_dict(load_file(path))
    print(f"{name}: with {path if path.is_file() else 'the map of the model'}", file=sys.stderr, flush=True)

"""Files that a command is to write, looked at before it takes any time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["check_outputs"]


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse files that could not be written, or that would replace another or what is read.

    Args:
        outputs: by option; None where nothing is to be written.
        inputs: files that are read.

    Raises:
        ConfigError: naming the option.
    """
    from counterpoint.errors import ConfigError

    # not `Path.resolve`, which raises where links go round in a circle
    read = {os.path.realpath(path) for path in inputs if path is not None}
    written: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None or path.is_char_device() or path.is_fifo():  # nothing is replaced there
            continue
        if not path.parent.is_dir():
            raise ConfigError(f"{option} {path}: there is no such folder to write into; make it first")
        if path.is_dir():
            raise ConfigError(f"{option} {path} is a folder; name a file")
        if os.path.realpath(path) in read:
            raise ConfigError(f"{option} {path} is what is read, which stays as it is; name another file")
        if other := written.get(os.path.realpath(path)):
            raise ConfigError(f"{other} and {option} name one file, {path}; give each a file of its own")
        written[os.path.realpath(path)] = option

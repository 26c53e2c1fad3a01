"""Check the output files of a command before its slow part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from counterpoint.errors import ConfigError

__all__ = ["check_outputs"]


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse outputs that cannot be written, or that would replace each other or an input.

    Args:
        outputs: files by option; None for an option that was not given.
        inputs: files that are read.

    Raises:
        ConfigError: naming the option.
    """
    # not `Path.resolve`, which raises on a loop of links
    read = {os.path.realpath(path) for path in inputs if path is not None}
    written: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None or path.is_char_device() or path.is_fifo():  # writing there replaces nothing
            continue
        if not path.parent.is_dir():
            raise ConfigError(f"{option} {path}: the folder to write into does not exist; create it first")
        if path.is_dir():
            raise ConfigError(f"{option} {path} is a folder; name a file")
        if os.path.realpath(path) in read:
            raise ConfigError(f"{option} {path} is an input, which must not change; name another file")
        if other := written.get(os.path.realpath(path)):
            raise ConfigError(f"{other} and {option} name the same file, {path}; give each its own file")
        written[os.path.realpath(path)] = option

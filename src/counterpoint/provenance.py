"""Provenance of results: command, date, versions, revision and machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from counterpoint.version import version as own_version

__all__ = ["provenance", "revision_of"]

PACKAGES = ("torch", "transformers", "numpy", "bm25s", "pytrec-eval-terrier", "ir-measures")


def provenance(command: str, packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Record the command, date, versions, revision and machine.

    Args:
        command: the command as typed.
        packages: packages whose versions are recorded; None for one that is not installed.
    """
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "counterpoint": own_version(),
            "python": platform.python_version(),
            **{name: _version(name) for name in packages},
        },
        "revision": revision_of(Path(__file__).parents[2]),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "gpu": _gpu(),
        },
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The processor's name; on Linux it is only in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpu() -> str | None:
    """The GPU that models run on; None if torch is not loaded, since no GPU was used then."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None


def revision_of(folder: Path) -> str | None:
    """The commit of the checkout in a folder, marked if tracked files have changes; None for no checkout."""
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return None

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "HEAD") + (" with changes" if changed else "")

import os
import platform
import subprocess
import sys

import pytest

from counterpoint.memory import OWN_CHOICE, peak_resident

FAULTS = """
import resource, sys
from counterpoint.memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else False
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * 200_000_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(kept, faults())
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")


def run(mode: str, **environment: str) -> tuple[str, int]:
    own = {name: value for name, value in os.environ.items() if name not in OWN_CHOICE}
    command = [sys.executable, "-c", FAULTS, mode]
    done = subprocess.run(command, env=own | environment, capture_output=True, text=True, check=True)
    kept, faults = done.stdout.split()
    return kept, int(faults)


@glibc
def test_memory_that_was_freed_is_used_again_without_page_faults():
    kept, faults = run("keep")
    _, before = run("leave")
    assert kept == "True"
    assert faults < before / 10  # 200 MB are 48,828 pages of 4 KiB


@glibc
@pytest.mark.parametrize("name", OWN_CHOICE)
def test_whoever_chose_in_the_environment_keeps_their_choice(name):
    value = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=100", "LD_PRELOAD": ""}.get(name, "100000")
    assert run("keep", **{name: value})[0] == "False"


def test_the_peak_is_at_least_what_is_held_and_does_not_fall():
    before = peak_resident()
    held = bytearray(b"x") * 100_000_000
    during = peak_resident()
    assert during >= len(held) and during >= before
    del held
    assert peak_resident() >= during

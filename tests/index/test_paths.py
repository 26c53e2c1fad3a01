"""Kernels that cannot be compiled are told and not used."""

import subprocess
import sys

import pytest

READ_ONLY = """
import logging
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # as where neither the package nor the user has a folder to write to
logging.basicConfig(format="%(message)s")
from counterpoint.index.paths import described
print(described()["kernel"])
"""


def test_without_a_folder_for_the_cache_numpy_computes_and_the_log_says_what_to_do():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", READ_ONLY], capture_output=True, text=True)
    assert done.stdout == "numpy\n", done.stderr
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.stderr


SWITCHES = """
from counterpoint.index.paths import WORTH, Meter
meter, other = Meter(), Meter()
print([meter.kernels(0.4 * WORTH) is None for _ in range(3)], other.kernels(1) is None)
"""


def test_kernels_are_loaded_before_numpy_takes_longer_and_then_all_stores_use_them():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", SWITCHES], capture_output=True, text=True)
    assert done.stdout == "[True, True, False] False\n", done.stderr

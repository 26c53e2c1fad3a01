"""The benchmarks are scripts, no package: their folders are looked at last, so that they hide nothing."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "speed")]

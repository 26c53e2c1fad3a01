"""The benchmarks are scripts, no package: their folders are looked at last, so that they hide nothing."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT), str(ROOT / "benchmarks" / "speed")]

"""The benchmarks are scripts, no package: their folder is looked at last, so that it hides nothing."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

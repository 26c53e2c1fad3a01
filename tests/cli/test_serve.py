"""Threads of `counterpoint serve`. What a query costs is measured by `benchmarks/speed/serve.py`."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, sys
from counterpoint.cli.serve import serve
asked = []
os.environ.setdefault = lambda name, value: asked.append([name, value, "numpy" in sys.modules])
try:
    serve(["missing"])
except Exception as error:
    print(json.dumps([asked, str(error)]))
"""


def test_blas_has_one_thread_per_search_unless_told_otherwise():
    pytest.importorskip("fastapi")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=dict(os.environ)
    )
    asked, error = json.loads(done.stdout.splitlines()[-1])
    assert "no such folder" in error
    assert asked == [["OPENBLAS_NUM_THREADS", "1", False]]  # a library that is loaded reads it no more

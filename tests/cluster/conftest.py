"""A Ray cluster of two processors on this machine, for all tests here."""

import os

import pytest

from counterpoint.cluster.connecting import LOCAL, connected


def pytest_collection_modifyitems(items):
    for item in items:
        if "/cluster/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("ray"))  # one cluster, in one process of the tests


@pytest.fixture(scope="session")
def ray():
    pytest.importorskip("ray")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # machines that run tests are busy
    with connected(LOCAL, cpus=3) as found:
        yield found

"""Users of something shared on a cluster: who leaves last is told, and who was killed does not count."""

import os
import signal
import subprocess
import sys
import time

import pytest

from counterpoint.cluster.presence import Presence

pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # of Ray about itself

USER = """
import sys
import ray
from counterpoint.cluster.presence import Presence
ray.init(address=sys.argv[1], log_to_driver=False)
mine = Presence("index")
print("there", flush=True)
sys.stdin.read()
"""


def test_the_last_user_is_told(ray):
    first, other, second = Presence("index"), Presence("index 2"), Presence("index")
    assert not first.leave()
    assert second.leave() and other.leave()


@pytest.mark.slow
def test_a_user_that_was_killed_does_not_count(ray):
    mine, at = Presence("index"), ray.get_runtime_context().gcs_address
    told = subprocess.Popen(
        [sys.executable, "-c", USER, at], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with told:
        assert told.stdout is not None and told.stdout.readline() == "there\n"
        assert not mine.leave()
        mine = Presence("index")
        os.kill(told.pid, signal.SIGKILL)
    for _ in range(100):
        if mine.leave():
            return
        time.sleep(0.2)
        mine = Presence("index")
    pytest.fail("the user that was killed still counts")

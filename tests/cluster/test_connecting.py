"""Connecting to Ray: what is not there is told."""

import os
import socket
import subprocess
import sys

import pytest

from counterpoint.cluster.connecting import LOOPBACK, MODE, connected
from counterpoint.errors import ConfigError, MissingExtraError


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"package 'ray'.*\[ray\]"), connected("local"):
        pass


def test_a_connection_that_exists_is_used_and_kept(ray):
    with connected("127.0.0.1:1") as found:
        assert found is ray
    assert ray.is_initialized()


@pytest.fixture
def listening():
    """The address of something that listens, and is no cluster."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refuses(ray, monkeypatch):
    """Has Ray say that it cannot connect, for some reason; returns what it is given."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def made(why):
        def init(**given):
            raise ConnectionError("no connection\nat all") from RuntimeError(why)

        monkeypatch.setattr(ray, "init", init)

    return made


def test_no_cluster_at_an_address(ray, monkeypatch, listening, refuses):
    refuses("late")
    with pytest.raises(ConfigError, match=rf"--ray {listening}: cannot connect \(no connection\)$"):
        with connected(listening):
            pass
    with pytest.raises(ConfigError, match=r"--ray 127.0.0.1:1: cannot connect .*ray start --head --port 1$"):
        with connected("127.0.0.1:1"):
            pass
    with pytest.raises(ConfigError, match="--ray host:port: not an address such as 10"):
        with connected("host:port"):
            pass


def test_a_token_of_the_account_is_sent_unless_the_user_says(listening, refuses, monkeypatch, tmp_path):
    refuses("RPC error: InvalidAuthToken: Authentication token is missing or incorrect")
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", MODE):
        monkeypatch.setenv(name, "")  # so that it is as before after the test
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))

    def mode_with(**variables):
        with monkeypatch.context() as patch, pytest.raises(ConfigError, match=r"copy ~/\.ray/auth_token"):
            for name, value in variables.items():
                patch.setenv(name, value)
            with connected(listening):
                pass
        return os.environ.pop(MODE, None)

    assert mode_with() is None
    assert mode_with(RAY_AUTH_TOKEN="secret") == "token"
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")
    assert mode_with() == "token"
    assert mode_with(RAY_AUTH_TOKEN_PATH=str(tmp_path / "nothing")) is None
    assert mode_with(**{MODE: "disabled"}) is None


@pytest.mark.slow
def test_only_this_machine_reaches_a_cluster_that_is_local():
    pytest.importorskip("ray")
    program = """
from counterpoint.cluster.connecting import connected
with connected("local", cpus=1) as ray:
    print(ray.get_runtime_context().gcs_address)
"""
    given = {name: value for name, value in os.environ.items() if name != LOOPBACK}
    told = subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("127.0.0.1:")

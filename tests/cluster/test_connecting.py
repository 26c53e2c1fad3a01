"""Connecting to Ray: what is not there is told."""

import sys

import pytest

from counterpoint.cluster.connecting import connected
from counterpoint.errors import ConfigError, MissingExtraError


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"package 'ray'.*\[ray\]"), connected("local"):
        pass


def test_a_connection_that_exists_is_used_and_kept(ray):
    with connected("127.0.0.1:1") as found:
        assert found is ray
    assert ray.is_initialized()


def test_no_cluster_at_an_address(ray, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **given: (_ for _ in ()).throw(ConnectionError("refused")))
    with pytest.raises(ConfigError, match=r"--ray 127.0.0.1:1: cannot connect \(refused\)"):
        with connected("127.0.0.1:1"):
            pass

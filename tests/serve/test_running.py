"""A server takes its address first, and says that it serves once it does."""

import threading
import urllib.request

import pytest

import counterpoint as cp
from counterpoint.errors import ConfigError


def served(tmp_path, **settings):
    from counterpoint.serve.app import application
    from counterpoint.serve.settings import ServeSettings

    cp.index([{"id": "a", "text": "sea"}], tmp_path / "notes", model=None).close()
    settings = ServeSettings(port=0, **settings)
    return application({"notes": tmp_path / "notes"}, settings), settings


def test_it_is_ready_when_it_answers(tmp_path, monkeypatch):
    pytest.importorskip("fastapi")
    import uvicorn

    from counterpoint.serve.running import bound, run

    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most - 1, most))
    app, settings = served(tmp_path)
    answers, servers, made = [], [], uvicorn.Server.__init__

    def kept(server, *given, **named):
        servers.append(server)
        made(server, *given, **named)

    def ask(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
                answers.append(answer.status)
        finally:
            servers[0].should_exit = True

    monkeypatch.setattr(uvicorn.Server, "__init__", kept)
    asking = []

    def ready(port):
        asking.append(threading.Thread(target=ask, args=(port,)))
        asking[0].start()

    run(app, settings, bound(settings), ready)
    asking[0].join()
    assert answers == [200]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)  # an index may have many files


def test_an_address_that_cannot_be_had_is_told(tmp_path):
    pytest.importorskip("fastapi")
    from counterpoint.serve.running import bound
    from counterpoint.serve.settings import ServeSettings

    with bound(ServeSettings(port=0)) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1, port {port}: .*--port"):
            bound(ServeSettings(port=port))
    elsewhere = ServeSettings(host="192.0.2.77", port=0, read_keys=("k" * 20,))
    with pytest.raises(ConfigError, match="cannot listen on 192.0.2.77"):
        bound(elsewhere)

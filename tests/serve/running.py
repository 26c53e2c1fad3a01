"""A server of indexes in a thread, at a free port of this machine."""

import threading
import time
from contextlib import contextmanager

import pytest


@contextmanager
def running(indexes, **settings):
    """Serve indexes, folders by name; its address."""
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("fastapi")
    from counterpoint.serve.app import application
    from counterpoint.serve.running import options_of
    from counterpoint.serve.settings import ServeSettings

    settings = ServeSettings(port=0, **settings)
    server = uvicorn.Server(uvicorn.Config(application(indexes, settings), **options_of(settings)))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()

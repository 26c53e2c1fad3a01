"""Requests made up by schemathesis from the description of the API: no error of the server."""

import json
import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import counterpoint as cp

pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")
DOCUMENTS = [
    {"id": "a", "text": "A whale is a mammal.", "year": 2020},
    {"id": "b", "text": "A shark is a fish."},
]


@pytest.mark.long
def test_no_request_is_answered_with_an_error_of_the_server(tmp_path, caplog, say):
    pytest.importorskip("schemathesis")
    from counterpoint.serve.app import application
    from counterpoint.serve.running import options_of
    from counterpoint.serve.settings import ServeSettings

    cp.index(DOCUMENTS, tmp_path / "notes", model=None).close()
    settings = ServeSettings(port=0)
    app = application({"notes": tmp_path / "notes"}, settings)
    server = uvicorn.Server(uvicorn.Config(app, **options_of(settings)))
    thread = threading.Thread(target=server.run)
    with caplog.at_level(logging.INFO, "counterpoint.serve"):
        thread.start()
        while not server.started:
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.index" = "notes"\n')
        command = [Path(sys.executable).with_name("schemathesis"), "run", "--max-examples", "200"]
        command += ["--checks", "not_a_server_error", f"http://127.0.0.1:{port}/openapi.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        server.should_exit = True
        thread.join()
    lines = [record.msg for record in caplog.records if record.name == "counterpoint.serve"]
    faults = [line for line in lines if line["status"] >= 500]
    assert not done.returncode and not faults, done.stdout + json.dumps(faults[:3])
    assert sum(line["status"] == 200 for line in lines) > 100
    say(f"schemathesis: {len(lines)} requests, 0 errors of the server")

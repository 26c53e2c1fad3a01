"""Requests made up by schemathesis from the description of the API: no error of the server."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serve.running import running

import counterpoint as cp

DOCUMENTS = [
    {"id": "a", "text": "A whale is a mammal.", "year": 2020},
    {"id": "b", "text": "A shark is a fish."},
]


@pytest.mark.long
def test_no_request_is_answered_with_an_error_of_the_server(tmp_path, caplog, say):
    pytest.importorskip("schemathesis")
    cp.index(DOCUMENTS, tmp_path / "notes", model=None).close()
    (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.index" = "notes"\n')
    command = [Path(sys.executable).with_name("schemathesis"), "run", "--max-examples", "200"]
    command += ["--checks", "not_a_server_error"]
    with (
        caplog.at_level(logging.INFO, "counterpoint.serve"),
        running({"notes": tmp_path / "notes"}) as address,
    ):
        command += [f"{address}/openapi.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = [record.msg for record in caplog.records if record.name == "counterpoint.serve"]
    faults = [line for line in lines if line["status"] >= 500]
    assert not done.returncode and not faults, done.stdout + json.dumps(faults[:3])
    assert sum(line["status"] == 200 for line in lines) > 100
    say(f"schemathesis: {len(lines)} requests, 0 errors of the server")

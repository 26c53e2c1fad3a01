"""Clients on raw sockets that are slow, leave early or send no HTTP are cut, and others are answered."""

import json
import logging
import re
import select
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from tests.serve.running import running

import counterpoint as cp

SECONDS = 1.0
LATE = SECONDS + 4  # a loaded machine may need longer
BODY = json.dumps({"query": "sea", "k": 5}).encode()
HEAD = (
    b"POST /v1/indexes/notes/search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n"
)
REQUEST = HEAD % len(BODY) + b"\r\n" + BODY
GET = b"GET /v1/indexes HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
LONG = "sea" + " " * 20_000


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connection") / "notes"
    documents = [{"id": str(at), "text": LONG + str(at)} for at in range(400)]
    cp.index(documents, folder, model=None).close()
    with running({"notes": folder}, seconds=SECONDS) as found:
        yield found


@pytest.fixture(autouse=True)
def no_errors(caplog):
    """Nothing that a client does is an error of the server."""
    with caplog.at_level(logging.WARNING):
        yield
    assert not [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]


@contextmanager
def connected(address):
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=LATE) as client:
        yield client


def received(client):
    """What comes until the server closes, or resets, the connection."""
    found = b""
    try:
        while piece := client.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


def status(client):
    """The status of the next answer, which is read to its end."""
    head, content = b"", b""
    while b"\r\n\r\n" not in head:
        head += client.recv(65536)
    head, _, content = head.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])
    while len(content) < length:
        content += client.recv(65536)
    return int(head.split()[1])


def assert_others_are_answered(address):
    with connected(address) as client:
        client.sendall(REQUEST.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert received(client).startswith(b"HTTP/1.1 200 ")


def assert_cut(client, began):
    """Closed by the server, after its time and not long after it."""
    assert received(client) == b""
    assert SECONDS / 2 < time.monotonic() - began < LATE


def trickled(client, text, seconds=LATE):
    """Send a text byte by byte until the server closes the connection; how long it let this go on."""
    began = time.monotonic()
    for at in range(len(text)):
        try:
            client.sendall(text[at : at + 1])
        except ConnectionError:
            return time.monotonic() - began
        if select.select([client], [], [], 0.02)[0] and received(client) == b"":
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, "the server still waits"
    raise AssertionError("the server took it all")


@pytest.mark.parametrize(
    "head",
    [b"GET /healthz HTTP/1.1\r\n" + b"x-a: b\r\n" * 1000, b"GET /" + b"a" * 9000],
    ids=["headers", "line"],
)
def test_a_head_that_comes_a_byte_at_a_time_is_cut(address, head):
    with connected(address) as client:
        assert SECONDS / 2 < trickled(client, head) < LATE
    assert_others_are_answered(address)


def test_so_is_the_second_head_of_a_connection(address):
    with connected(address) as client:
        client.sendall(GET)
        assert status(client) == 200
        assert SECONDS / 2 < trickled(client, b"GET /" + b"a" * 9000) < LATE


def test_a_head_that_never_ends_is_cut(address):
    with connected(address) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127")
        assert_cut(client, time.monotonic())


def test_a_slow_body_is_told_and_cut(address):
    with connected(address) as client:
        client.sendall(HEAD % 1000 + b"\r\n")
        began, told = time.monotonic(), b""
        while not told and time.monotonic() - began < LATE:
            client.sendall(b" ")
            if select.select([client], [], [], 0.02)[0]:
                told = received(client)
        assert told.startswith(b"HTTP/1.1 408 ") and b"the body did not arrive in 1 seconds" in told
    assert_others_are_answered(address)


def test_a_slow_body_that_nobody_waits_for_is_cut(address):
    """The answer is there before the body: the type is not JSON."""
    with connected(address) as client:
        client.sendall((HEAD % 100_000 + b"\r\n").replace(b"application/json", b"text/plain"))
        assert status(client) == 415
        assert trickled(client, b" " * 9000) < LATE


def test_idle_connections_are_cut_and_do_not_keep_others_from_being_answered(address):
    began = time.monotonic()
    with ExitStack() as open_ones:
        idle = [open_ones.enter_context(connected(address)) for _ in range(100)]
        assert_others_are_answered(address)
        for client in idle:
            assert received(client) == b""
    assert time.monotonic() - began < LATE


def test_connections_beyond_the_most_are_told_and_closed(tmp_path):
    cp.index([{"id": "a", "text": "sea"}], tmp_path / "notes", model=None).close()
    with running({"notes": tmp_path / "notes"}, connections=3) as address, ExitStack() as open_ones:
        held = [open_ones.enter_context(connected(address)) for _ in range(3)]
        for client in held:
            client.sendall(GET)
            assert status(client) == 200
        for _ in range(20):
            with connected(address) as client:
                assert received(client).startswith(b"HTTP/1.1 503 ")
        held[0].close()
        wait_until = time.monotonic() + LATE
        while (answer := first_line(address)) != b"HTTP/1.1 200 OK" and time.monotonic() < wait_until:
            assert answer == b"HTTP/1.1 503 Service Unavailable"
        assert answer == b"HTTP/1.1 200 OK"


def first_line(address):
    with connected(address) as client:
        with suppress(ConnectionError):
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        return received(client).split(b"\r\n")[0]


def test_a_client_that_leaves_in_the_middle_of_a_body(address):
    for _ in range(20):
        with connected(address) as client:
            client.sendall(HEAD % 1000 + b"\r\n" + BODY)
    with connected(address) as client:
        client.sendall(HEAD % 1000 + b"\r\n" + BODY)
        client.shutdown(socket.SHUT_WR)
        received(client)
    assert_others_are_answered(address)


def test_a_client_that_never_reads_its_answers_is_cut(address):
    """The answers are larger than the buffers of both sides."""
    body = json.dumps({"query": "sea", "k": 400}).encode()
    request = HEAD % len(body) + b"\r\n" + body
    with connected(address) as client:
        client.sendall(request * 3)
        assert_others_are_answered(address)
        deadline = time.monotonic() + LATE
        while time.monotonic() < deadline:  # sending fails once the server has cut the connection
            try:
                client.sendall(b" ")
            except ConnectionError:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the server still waits")


def test_a_large_answer_reaches_a_client_that_reads(address):
    body = json.dumps({"query": "sea", "k": 400}).encode()
    with connected(address) as client:
        client.sendall(HEAD % len(body) + b"connection: close\r\n\r\n" + body)
        _, _, content = received(client).partition(b"\r\n\r\n")
        assert len(json.loads(content)["hits"]) == 400


def test_pipelined_requests_are_answered_in_order(address):
    with connected(address) as client:
        ids = [b"3", b"1", b"nope", b"2"]
        path = b"GET /v1/indexes/notes/documents/%s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        client.sendall(
            b"".join(path % name for name in ids) + GET.replace(b"host", b"connection: close\r\nhost")
        )
        found = received(client)
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", found)
    assert statuses == [b"200", b"200", b"404", b"200", b"200"]
    places = [found.index(b'"id":"%s"' % name) for name in (b"3", b"1", b"2")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",  # the beginning of TLS
        b"GET\r\n\r\n",
        b"GET / SMTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: \x00\r\n\r\n",
        b"GET /%s HTTP/1.1\r\nhost: a\r\n\r\n" % (b"a" * 500_000),
        b"GET / HTTP/1.1\r\nhost: a\r\nx: %s\r\n\r\n" % (b"a" * 500_000),
        b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
        HEAD[: HEAD.index(b"content-length")] + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=range(13),
)
def test_what_is_no_http_is_refused(address, sent):
    with connected(address) as client:
        try:
            client.sendall(sent)
        except ConnectionError:
            pass  # it refused before it had read everything
        found = received(client)
        assert found == b"" or re.match(rb"HTTP/1.1 (400|431|501) ", found)
    assert_others_are_answered(address)


def test_a_malformed_body_after_the_answer_closes_the_connection(address):
    head = (HEAD[: HEAD.index(b"content-length")]).replace(b"application/json", b"text/plain")
    with connected(address) as client:
        client.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
        assert status(client) == 415
        client.sendall(b"zz\r\n")
        assert received(client) == b""
    assert_others_are_answered(address)

"""Clients of one server in a process of their own, without a library for HTTP that would cost more than it.

    python serve_load.py JOB

JOB is JSON: `port`, `path`, `key` (null for none), `texts` (a file with a JSON list of queries), `different`
(how many of them are asked), `first` (the number of the first query), `clients`, `k`, `seconds` and
`requests` (it ends at whichever comes first) and `result`, the file that is written. Each client has one
connection, and sends a query when it has its answer.
"""

import asyncio
import json
import sys
import time
import zlib
from itertools import count
from pathlib import Path


def main() -> None:
    job = json.loads(sys.argv[1])
    texts = json.loads(Path(job["texts"]).read_text(encoding="utf-8"))[: job["different"]]
    cpu, began = time.process_time(), time.monotonic()
    answers = asyncio.run(all_clients(job, texts, began))
    spent, wall = time.process_time() - cpu, time.monotonic() - began
    found = {"answers": answers, "cpu": spent, "wall": wall}
    Path(job["result"]).write_text(json.dumps(found))


async def all_clients(job, texts, began) -> list[dict]:
    """The answers of all clients, in the order of their ends."""
    answers, numbers = [], count(job["first"])

    async def client() -> None:
        reader = writer = None
        while time.monotonic() < began + job["seconds"] and len(answers) < job["requests"]:
            number = next(numbers) % len(texts)
            sent = time.monotonic()
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", job["port"])
                writer.write(request_of(job, texts[number]))
                status, body = await asyncio.wait_for(answer_of(reader), 120)
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                status, body, writer = 0, repr(error).encode(), None
            done = time.monotonic()
            answers.append(
                {"query": number, "sent": sent, "done": done, "status": status} | read(status, body)
            )

    await asyncio.gather(*(client() for _ in range(job["clients"])))
    return answers


def request_of(job, text: str) -> bytes:
    body = json.dumps({"query": text, "k": job["k"]}).encode()
    key = f"authorization: Bearer {job['key']}\r\n" if job["key"] else ""
    head = f"POST {job['path']} HTTP/1.1\r\nhost: localhost:{job['port']}\r\n{key}"
    return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer that says its length."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.split(b"content-length:")[1].split(b"\r\n")[0]
    return int(head.split(b" ", 2)[1]), await reader.readexactly(int(length))


def read(status: int, body: bytes) -> dict:
    """What is kept of an answer: its commit, and id, score and checksum of each hit; or what went wrong."""
    if status != 200:
        return {"fault": body.decode(errors="replace")[:200]}
    answer = json.loads(body)
    hits = [(hit["id"], hit["score"], zlib.crc32(hit["text"].encode())) for hit in answer["hits"]]
    return {"commit": answer.get("commit"), "asked": answer["query"], "hits": hits}


if __name__ == "__main__":
    main()

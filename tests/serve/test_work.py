"""Threads and calls of the server are bounded; queries that wait together are encoded together."""

import threading
import time

import pytest

pytest.importorskip("fastapi")
import anyio  # noqa: E402

from counterpoint.serve.problems import Problem  # noqa: E402
from counterpoint.serve.work import Threads, Together  # noqa: E402


def refusals(outcomes):
    return [each.detail for each in outcomes if isinstance(each, Problem)]


def all_at_once(*calls):
    """The results of asynchronous calls, or what they raised, in order."""
    outcomes = [None] * len(calls)

    async def one(at, call):
        try:
            outcomes[at] = await call()
        except Exception as error:
            outcomes[at] = error

    async def everything():
        async with anyio.create_task_group() as group:
            for at, call in enumerate(calls):
                group.start_soon(one, at, call)

    anyio.run(everything, backend="asyncio")
    return outcomes


def test_more_than_may_wait_is_refused_at_once():
    together, most, lock = 0, 0, threading.Lock()

    def work():
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.05)
        with lock:
            together -= 1
        return "done"

    async def made():
        threads = Threads(2, 3, 5.0)
        return threads

    threads = anyio.run(made, backend="asyncio")
    outcomes = all_at_once(*[lambda: threads.run(work)] * 9)
    assert outcomes.count("done") == 5 and len(refusals(outcomes)) == 4 and most == 2


def test_what_runs_when_its_time_is_over_keeps_its_thread():
    """Otherwise clients that try again would start ever more threads."""
    running, most, started, lock = 0, 0, 0, threading.Lock()

    def work():
        nonlocal running, most, started
        with lock:
            running, started = running + 1, started + 1
            most = max(most, running)
        time.sleep(0.5)
        with lock:
            running -= 1

    async def tried():
        threads, told = Threads(1, 1, 0.05), []
        for _ in range(4):
            try:
                await threads.run(work)
            except Problem as problem:
                told.append(problem.detail)
            await anyio.sleep(0.01)
        await anyio.sleep(1)
        return told, await threads.run(lambda: "done")

    told, after = anyio.run(tried, backend="asyncio")
    assert told == ["this took more than 0.05 seconds; ask for less"] * 4 and after == "done"
    assert (most, started) == (1, 1)  # those that waited for the thread never began


def test_what_was_accepted_without_a_limit_is_finished():
    done = []

    async def cancelled():
        threads = Threads(1, 1)
        with anyio.move_on_after(0.02):
            await threads.run(lambda: (time.sleep(0.1), done.append(True)))

    anyio.run(cancelled, backend="asyncio")
    assert done == [True]


def test_queries_that_wait_are_encoded_in_one_call():
    calls = []

    def encode(texts):
        calls.append(texts)
        time.sleep(0.05)

    async def made():
        return Together(100, 5.0)

    together = anyio.run(made, backend="asyncio")
    asked = [[f"q{at}"] for at in range(6)] + [["q1", "q7"]]
    outcomes = all_at_once(*[lambda texts=texts: together.encode(encode, texts) for texts in asked])
    assert outcomes == [None] * 7
    assert sorted(text for call in calls for text in call) == ["q0", "q1", "q2", "q3", "q4", "q5", "q7"]
    assert len(calls) <= 2  # the first may run alone


def test_an_error_of_a_call_reaches_everybody_in_it_and_nobody_else():
    def encode(texts):
        time.sleep(0.02)
        if "bad" in texts:
            raise ValueError("bad")

    async def made():
        return Together(100, 5.0)

    together = anyio.run(made, backend="asyncio")
    first = all_at_once(lambda: together.encode(encode, ["bad"]), lambda: together.encode(encode, ["bad"]))
    assert [str(each) for each in first] == ["bad", "bad"]
    assert all_at_once(lambda: together.encode(encode, ["good"])) == [None]


def test_calls_are_bounded_in_number_and_time():
    async def made():
        return Together(2, 0.05)

    together = anyio.run(made, backend="asyncio")
    many, slow = all_at_once(
        lambda: together.encode(lambda texts: None, ["a", "b", "c"]),
        lambda: together.encode(lambda texts: time.sleep(0.3), ["a"]),
    )
    assert "too many" in many.detail and "more than 0.05 seconds" in slow.detail

"""Waiting: for hosts that are dead, for a user who has had enough, for a process that was stopped
(fault 94). And how few round trips a first batch takes."""

import json
import signal
import socket
import time

import pytest
from store_runs import BATCH

pytestmark = pytest.mark.alone  # it must end in time

BUSY = 3  # seconds that a busy machine may need for what takes less than one


@pytest.fixture
def dead_host():
    """A port that takes connections and says nothing, as a host that hangs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("seconds", [2, 4])
def test_a_dead_host_ends_within_the_time_limit_with_the_cause(stoker, dead_host, seconds):
    begun = time.monotonic()
    words = stoker.fails(f"{dead_host}/a.tar", "--timeout", seconds)
    took = time.monotonic() - begun
    assert dead_host in words
    assert seconds - 1 < took < seconds + BUSY + 2


def test_the_time_limit_can_be_a_variable(stoker, dead_host):
    begun = time.monotonic()
    stoker.with_environment(STOKER_TIMEOUT="2").fails(f"{dead_host}/a.tar")
    assert time.monotonic() - begun < 2 + BUSY + 2


def interrupt_when(run, ready, number=signal.SIGINT):
    """Sends a signal once ready() holds; returns status, errors and seconds."""
    deadline = time.monotonic() + 30
    while not ready() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert run.poll() is None, run.stderr.read()
    time.sleep(0.2)
    begun = time.monotonic()
    run.send_signal(number)
    _, errors = run.communicate(timeout=30)
    return run.returncode, errors, time.monotonic() - begun


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_a_host_says_nothing_ends_at_once(stoker, dead_host, number):
    begun = time.monotonic()
    run = stoker.start("stream", f"{dead_host}/a.tar", *BATCH)
    status, errors, took = interrupt_when(run, lambda: time.monotonic() - begun > 0.5, number)
    assert status == 128 + number and errors == "" and took < BUSY


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_ctrl_c_while_a_body_stalls_ends_at_once(place, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    server.fault("trickle", "*.tar", method="GET", after=2)
    run = stoker.start("stream", source, *BATCH)
    status, errors, took = interrupt_when(run, lambda: len(server.reads(".tar")) > 2)
    assert status == 130 and errors == "" and took < BUSY


def test_ctrl_c_while_a_list_is_slow_ends_at_once(place):
    server, stoker, source = place("s3")
    server.fault("delay", query="list-type", seconds=30)
    run = stoker.start("stream", source, *BATCH)
    status, errors, took = interrupt_when(run, lambda: server.requests)
    assert status == 130 and errors == "" and took < BUSY


def test_ctrl_c_while_an_index_is_made_ends_at_once(place):
    server, stoker, source = place()
    server.fault("delay", "*.tar", method="GET", seconds=30)
    run = stoker.start("index", source)
    status, errors, took = interrupt_when(run, lambda: server.reads(".tar"))
    assert status == 130 and errors == "" and took < BUSY


def test_ctrl_c_while_backing_off_ends_at_once(place):
    server, stoker, source = place()
    server.fault("status", "*.tar", status=503, retry_after=30)
    run = stoker.start("stream", source, *BATCH)
    status, errors, took = interrupt_when(run, lambda: server.requests)
    assert status == 130 and errors == "" and took < BUSY


def test_ctrl_c_while_credentials_are_waited_for_ends_at_once(place, identity):
    _server, stoker, source = place("s3")
    giver = identity()
    giver.delay = 30
    command = stoker.with_environment(
        AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, **giver.environment("container")
    )
    run = command.start("stream", source, *BATCH)
    deadline = time.monotonic() + 20
    while not giver.requests and time.monotonic() < deadline and run.poll() is None:
        time.sleep(0.02)
    if run.poll() is None:
        begun = time.monotonic()
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=30)
        assert run.returncode in (130, 1) and time.monotonic() - begun < BUSY
    else:
        run.communicate()


def test_fault_94_a_run_that_was_stopped_goes_on_without_an_error(place, expected):
    """It is stopped for longer than its time limit while requests are on their way."""
    server, stoker, source = place()
    stoker("index", source)
    server.forget()
    server.fault("delay", "*.tar", method="GET", seconds=0.3)
    run = stoker.start("stream", source, *BATCH, "--json", "--timeout", "4")
    deadline = time.monotonic() + 20
    while not server.reads(".tar") and time.monotonic() < deadline:
        time.sleep(0.01)
    run.send_signal(signal.SIGSTOP)
    time.sleep(7)
    run.send_signal(signal.SIGCONT)
    printed, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert json.loads(printed)["digest"] == expected
    assert errors == ""


@pytest.mark.parametrize("kind", ["http", "s3", "az"])
def test_a_first_batch_takes_three_round_trips_with_an_index(place, kind):
    server, stoker, source = place(kind)
    stoker("index", source)
    server.forget()
    delay = 1.5
    server.fault("delay", seconds=delay)
    begun = time.monotonic()
    stoker("stream", source, *BATCH, "--stop-after", 1)
    took = time.monotonic() - begun
    assert took < 4 * delay, [(r.method, r.target, r.header("Range")) for r in server.requests]

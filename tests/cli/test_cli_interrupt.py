"""Ctrl-C: the command ends soon, with status 130, and leaves nothing half-written."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

pytestmark = pytest.mark.alone  # it must end soon

PATIENCE = 5  # seconds; it gives up after 0.8 of its own, the rest is for a busy machine


def interrupt(stoker, *arguments, ready, number=signal.SIGINT, **options):
    """Starts it, sends the signal once ready() holds, and gives status, errors and seconds."""
    process = stoker.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    deadline = time.monotonic() + 30
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert process.poll() is None, process.stderr.read()
    sent = time.monotonic()
    process.send_signal(number)
    errors = process.communicate(timeout=20)[1]
    return process.returncode, errors, time.monotonic() - sent


def visible(folder):
    """What has its final name. A machine too slow to clean up in time leaves a hidden folder."""
    names = os.listdir(folder) if folder.exists() else []
    return [name for name in names if not name.startswith(".")]


def holds(folder):
    """Not empty, and something has been written."""
    return any(path.is_file() and path.stat().st_size for path in folder.rglob("*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_generating_ends_and_leaves_nothing(stoker, tmp_path, number):
    out = tmp_path / "out"
    out.mkdir()
    status, errors, seconds = interrupt(
        stoker,
        *("gen", "tensors", "-o", out, "--samples", 100_000, "--shape", "200000", "--dtype", "u8"),
        *("--loose", tmp_path / "loose"),
        ready=lambda: holds(out),
        number=number,
    )
    assert status == 128 + number and errors == b"" and seconds < PATIENCE
    assert visible(out) == [] and visible(tmp_path / "loose") == []


def test_packing_ends_and_leaves_nothing(stoker, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(3000):
        with open(tmp_path / "in" / f"{i:04d}.bin", "wb") as file:
            file.truncate(1_000_000)  # a hole: it takes time to copy, and no room here
    stoker("index", tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    status, errors, seconds = interrupt(
        stoker,
        *("pack", tmp_path / "in", "-o", out, "--to", "tar", "--shard-size", "1MiB"),
        ready=lambda: holds(out),
    )
    assert status == 130 and errors == b"" and seconds < PATIENCE
    assert visible(out) == []


def test_streaming_ends_and_its_state_can_be_resumed(stoker, tensors, tmp_path):
    state = tmp_path / "state"
    begun = time.monotonic()
    status, errors, seconds = interrupt(
        stoker,
        *("stream", tensors / "shards", "--batch-size", 4, "--shuffle", "--epochs", 10**9),
        *("--save-state", state, "--trace", tmp_path / "trace.json"),
        ready=lambda: time.monotonic() - begun > 0.5,
    )
    assert status == 130 and errors == b"" and seconds < PATIENCE
    assert sorted(os.listdir(tmp_path)) in (["state", "trace.json"], ["state"])
    assert stoker.order(
        *(tensors / "shards", "--batch-size", 4, "--shuffle", "--epochs", 10**9),
        *("--resume", state, "--stop-after", 3),
    )


def test_a_write_that_nobody_reads_is_ended(stoker, tensors):
    process = stoker.start(
        *("stream", tensors / "shards", "--batch-size", 1, "--epochs", 10**6, "--order"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(0.5)  # the pipe is full long since
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=5) == 130
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()


def run_on_terminal(stoker, *arguments):
    """What it prints when standard error is a terminal."""
    leader, follower = pty.openpty()
    process = stoker.start(*arguments, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    printed = b""
    while True:
        try:
            some = os.read(leader, 4096)
        except OSError:  # the other side is closed
            break
        if not some:
            break
        printed += some
    os.close(leader)
    assert process.wait(timeout=30) == 0
    return printed


def test_a_bar_is_drawn_on_a_terminal_and_taken_away(stoker, tmp_path):
    arguments = (
        *("gen", "tensors", "-o", tmp_path / "a", "--samples", 60, "--shards", 2),
        *("--shape", "1000000", "--dtype", "u8"),
    )
    printed = run_on_terminal(stoker, *arguments)
    assert b"generating [" in printed and b" of 60 samples" in printed
    assert printed.endswith(b"\r\x1b[K")


def test_the_bar_tells_the_speed_and_the_time_left(stoker, tensors):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    process = stoker.start(
        *("stream", tensors / "shards", "--batch-size", 4, "--epochs", 10**8),
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    printed = b""
    try:
        while not (b" left" in printed and b"batches/s" in printed):
            some = os.read(leader, 4096)
            assert some, printed
            printed += some
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        os.close(leader)
    lines = [line.split(b"\x1b[K")[0].decode() for line in printed.split(b"\r") if b" left" in line]
    assert all(len(line) < 120 for line in lines)
    wanted = (
        r"streaming \[[=> ]+\] +\d+ %  (\d+ h \d\d min|\d+ min \d\d s|\d+ s) left  "
        r"[\d.]+( k| M)? batches/s  \d+ of \d+ batches"
    )
    assert re.match(wanted, lines[0]), lines[0]


def test_nothing_is_drawn_on_a_pipe(stoker, tmp_path):
    done = stoker(
        *("gen", "tensors", "-o", tmp_path / "a", "--samples", 30, "--shards", 2),
        *("--shape", "1000000", "--dtype", "u8"),
    )
    assert done.stderr == ""
    assert stoker("stream", tmp_path / "a", "--batch-size", 1, "--epochs", 3).stderr == ""

"""A server that is a program of its own: started, waited for, stopped."""

import ctypes
import os
import signal
import socket
import subprocess
import time

PATIENCE = 30  # seconds until a program must answer


class NotAvailable(Exception):
    """The server cannot be had on this machine; the words say why."""


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port, host="127.0.0.1"):
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def die_with_parent():
    """Run in a child before its program: the kernel ends it when whoever started it dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Program:
    """A child process that listens on a port. Another port is tried where one was taken."""

    def __init__(self, command, log, environment=None):
        """command(port) gives the words; what it prints goes to the file log."""
        self.log = log
        for _ in range(3):
            self.port = free_port()
            self._start([str(word) for word in command(self.port)], environment)
            if self._wait():
                return
            self.stop()
        raise NotAvailable(f"{command(0)[0]} does not start: {self.last_words()}")

    def _start(self, words, environment):
        with open(self.log, "ab") as log:
            try:
                self.process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment or os.environ,
                    start_new_session=True,  # Ctrl-C is for whoever runs the tests
                    preexec_fn=die_with_parent,
                )
            except OSError as error:
                raise NotAvailable(f"{words[0]} cannot be run: {error.strerror}") from None

    def _wait(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if answers(self.port):
                return True
            time.sleep(0.05)
        return False

    def last_words(self):
        with open(self.log, "rb") as log:
            return log.read()[-500:].decode(errors="replace").strip() or "it said nothing"

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

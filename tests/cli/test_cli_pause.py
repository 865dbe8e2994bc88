"""A run that is stopped and goes on (FAULTS 94)."""

import json
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.alone  # it is stopped at a moment


def test_a_run_that_was_stopped_goes_on_as_if_nothing_was(stoker, tensors):
    arguments = ["stream", tensors / "shards", "--batch-size", "4", "--shuffle", "--epochs", "3000"]
    expected = stoker.json(*arguments)["digest"]
    run = stoker.start(
        *arguments, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3):
        time.sleep(0.02)
        run.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        run.send_signal(signal.SIGCONT)
    printed, told = run.communicate(timeout=60)
    assert run.returncode == 0
    assert json.loads(printed)["digest"] == expected
    assert told == ""  # a pause is no stall

"""`stoker run`: what the run file says of processes, threads and disks is what a script did, as the
script itself knows."""

import json
import os
import sys

import pytest

pytestmark = pytest.mark.alone  # CPU time, and who waits for it

SCRIPT = """
import ctypes, json, mmap, os, resource, sys, threading, time

WRITTEN, BY_CHILD, HELD = 24_000_000, 10_000_000, 96 << 20
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one waits for the other
child = os.fork()
if child == 0:
    with open(sys.argv[1] + ".child", "wb") as file:
        file.write(bytes(BY_CHILD))
    while time.process_time() < 0.5:
        pass
    os._exit(0)


def work():
    ctypes.CDLL(None).prctl(15, b"busy-thread", 0, 0, 0)
    while time.thread_time() < 0.6:
        pass
    with open("/proc/thread-self/schedstat") as file:
        told["cpu"], told["delay"] = (int(word) / 1e9 for word in file.read().split()[:2])
    time.sleep(0.3)


told = {}
thread = threading.Thread(target=work)
thread.start()
with open(sys.argv[1], "wb") as file:
    file.write(bytes(WRITTEN))
    os.fsync(file.fileno())
for _ in range(3):
    with open(sys.argv[1], "rb") as file:
        file.read()
pages = mmap.mmap(-1, HELD)
pages.madvise(mmap.MADV_NOHUGEPAGE)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for place in range(0, HELD, mmap.PAGESIZE):
    pages[place] = 1
told["faults"] = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
told["touched"] = told["faults"] - before
pages.close()
thread.join()
os.waitpid(child, 0)
use = resource.getrusage(resource.RUSAGE_SELF)
told["process_cpu"] = use.ru_utime + use.ru_stime
told["read"] = int(open("/proc/self/io").read().split()[1])
told["most"] = use.ru_maxrss * 1024
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("host")


@pytest.fixture(scope="module")
def run(stoker, folder):
    """The run file, and what the script says of itself."""
    (folder / "script.py").write_text(SCRIPT)
    words = (sys.executable, "-S", folder / "script.py", folder / "data")
    done = stoker("run", "--json", folder / "run.json", "--", *words)
    return json.loads((folder / "run.json").read_text()), json.loads(done.stdout)


@pytest.fixture(scope="module")
def main(run):
    return next(one for one in run[0]["processes"] if one["max_rss_bytes"] > 90 << 20)


@pytest.fixture(scope="module")
def child(run, main):
    return next(one for one in run[0]["processes"] if one is not main)


def test_bytes_are_those_that_were_read_and_written_each_by_its_process(run, main, child):
    assert len(run[0]["processes"]) == 2
    assert main["write_calls_bytes"] == pytest.approx(24e6, rel=0.01)
    assert child["write_calls_bytes"] == pytest.approx(10e6, rel=0.01)
    assert main["read_calls_bytes"] == pytest.approx(run[1]["read"], rel=0.02)
    assert main["read_calls_bytes"] >= 72e6
    for process, written in ((main, 24e6), (child, 10e6)):  # a file system in memory has no disk
        assert process["written_bytes"] in (0, pytest.approx(written, rel=0.1))


def test_cpu_time_is_that_of_the_process_and_its_waiting_is_told(run, main, child):
    assert main["cpu_s"] == pytest.approx(run[1]["process_cpu"], rel=0.05, abs=0.05)
    assert child["cpu_s"] == pytest.approx(0.5, abs=0.1)
    assert child["run_delay_s"] > 0.2 and main["run_delay_s"] > 0.2  # they shared a CPU


def test_faults_and_the_most_memory_are_the_kernels_own(run, main):
    told = run[1]
    assert told["touched"] >= (96 << 20) // 16384  # pages of 16 KiB at the most
    assert told["faults"] <= main["minor_faults"] <= told["faults"] * 1.1 + 500
    assert main["max_rss_bytes"] == pytest.approx(told["most"], rel=0.1)


def test_waits_for_disks_are_told_where_the_kernel_counts_them(main, child):
    try:
        with open("/proc/sys/kernel/task_delayacct") as file:
            counts = file.read().strip() != "0"
    except FileNotFoundError:
        counts = True
    assert (main["io_wait_s"] is not None) == (child["io_wait_s"] is not None) == counts


def test_a_thread_is_told_by_its_name_with_what_it_used(run, main):
    threads = run[0]["threads"]
    busy = next(one for one in threads if one["name"] == "busy-thread")
    assert busy["pid"] == main["pid"] != busy["thread"]
    assert busy["cpu_s"] == pytest.approx(run[1]["cpu"], abs=0.05)
    assert busy["run_delay_s"] == pytest.approx(run[1]["delay"], abs=0.1)
    assert len(threads) <= 16
    assert [one["cpu_s"] for one in threads] == sorted(
        (one["cpu_s"] for one in threads), reverse=True
    )


def disk_of(path):
    """The name of the disk, or of its part, that a file lies on; "": of none."""
    device = os.stat(path).st_dev
    with open("/proc/diskstats") as file:
        for major, minor, name, *_ in map(str.split, file):
            if (int(major), int(minor)) == (os.major(device), os.minor(device)):
                return name
    return ""


def test_disks_of_the_machine_took_what_the_run_wrote(run, folder):
    if not disk_of(folder / "data").startswith(("sd", "vd", "xvd", "nvme")):
        pytest.skip("the folder for tests is not on a disk")
    assert run[0]["machine_io"]["disk_written_bytes"] >= 24e6
    assert run[0]["machine_io"]["disk_read_bytes"] >= 0
    assert run[0]["machine_io"]["network_sent_bytes"] >= 0

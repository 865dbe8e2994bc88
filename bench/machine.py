"""What this machine is, in the words of a result file."""

import os
import platform
import shutil
import subprocess


def cores():
    """Cores this process may use: affinity, then the cgroup's quota."""
    count = len(os.sched_getaffinity(0))
    try:
        quota, period = open("/sys/fs/cgroup/cpu.max").read().split()
        if quota != "max":
            count = max(1, min(count, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return count


def describe():
    return {
        "cpu": _cpu_name(),
        "cores": cores(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": _gpu_name(),
        "kernel": platform.release(),
    }


def load():
    """The load average: other work on the machine makes every figure lower."""
    return os.getloadavg()[0]


def _cpu_name():
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _gpu_name():
    if not shutil.which("nvidia-smi"):
        return None
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True)
    return found.stdout.split("\n")[0].strip() or None if found.returncode == 0 else None

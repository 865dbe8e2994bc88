"""A healthy script, until programs that it started itself take the CPUs."""

import os
import subprocess
import sys

import noisy_neighbour

HOG = "while True: pass"
children = []


def start(_options):
    if not children:
        for cpu in sorted(os.sched_getaffinity(0)):
            command = ["taskset", "-c", str(cpu), sys.executable, "-c", HOG]
            children.append(subprocess.Popen(command))


if __name__ == "__main__":
    try:
        noisy_neighbour.main(start)
    finally:
        for child in children:
            child.kill()
            child.wait()

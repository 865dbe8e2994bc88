"""tools/setup.sh on machines that lack something. Each test runs the real script with a PATH that
holds links to this machine's commands, but for those that the test takes away."""

import os
import subprocess
import sys

import pytest

from .conftest import ROOT

WANTED = (
    "bash sh cat grep sed env dirname id cc gcc as ld make cmake ninja pkg-config tar clang "
    "apt-get find touch mv uname ffmpeg"
).split()


@pytest.fixture
def machine(tmp_path):
    """Returns a function that runs setup.sh without some commands, as an ordinary user."""

    def run_setup(*arguments, without=(), fakes=None):
        for name in WANTED:
            path = next(
                (p for d in os.get_exec_path() if os.access(p := os.path.join(d, name), os.X_OK)),
                None,
            )
            if path and name not in without:
                (tmp_path / name).symlink_to(path)
        ordinary = {
            "id": "#!/bin/sh\necho 1000\n",
            "python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
            "chromium": "#!/bin/sh\n",
        }
        for name, text in (ordinary | (fakes or {})).items():
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return subprocess.run(
            [ROOT / "tools" / "setup.sh", *arguments],
            env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    return run_setup


def test_without_root_and_sudo_it_prints_the_one_line_and_ends_with_1(machine):
    done = machine("all", without=["tar"])
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if "apt-get install" in line]
    assert lines == ["  sudo apt-get install -y --no-install-recommends tar"]
    assert "installing" not in done.stdout


def test_sudo_that_asks_for_a_password_counts_as_none(machine):
    done = machine("all", without=["tar"], fakes={"sudo": "#!/bin/sh\necho password >&2\nexit 1\n"})
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends tar" in done.stdout


def test_sudo_without_a_password_is_used_and_what_is_installed_is_said(machine, tmp_path):
    log = tmp_path / "log"
    done = machine(
        "all",
        without=["tar"],
        fakes={
            "sudo": f'#!/bin/sh\necho "$@" >> {log}\n',
            "python3": "#!/bin/sh\nexit 3\n",  # stops after the packages
        },
    )
    assert "installing with apt:" in done.stdout and " tar" in done.stdout
    assert "apt-get install -y --no-install-recommends" in log.read_text()
    assert " tar" in log.read_text()


def test_an_old_python_is_refused_in_clear_words(machine):
    # Old enough only where it is asked for its version.
    old = f"""#!/bin/sh
if [ "$1" = - ]; then
    {{ echo 'import sys; sys.version_info = (3, 10, 4)'; cat; }} | {sys.executable} -
else
    exec {sys.executable} "$@"
fi
"""
    done = machine("all", fakes={"python3": old})
    assert done.returncode == 1
    assert "python3 is 3.10; Stoker needs 3.11 or newer" in done.stderr


def test_a_c_build_without_cmake_says_what_to_install(machine):
    done = machine("check", without=["cmake"])
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends cmake" in done.stdout


def test_the_second_time_nothing_is_installed_and_one_line_printed():
    subprocess.run([ROOT / "tools" / "setup.sh"], capture_output=True, check=True)
    done = subprocess.run([ROOT / "tools" / "setup.sh"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == "setup: everything is there\n"

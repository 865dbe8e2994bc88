"""`stoker run`: the command runs as it would alone, and what was seen is written down."""

import glob
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from places import BINARY

pytestmark = pytest.mark.alone  # signals, terminals and shares of time

PYTHON = sys.executable


def shell(stoker, script, *options, **rest):
    return stoker("run", *options, "--", "sh", "-c", script, **rest)


def ready(process):
    """Waits until the command has said so on its standard output."""
    assert process.stdout.readline() == b"ready\n"


# --- as it would alone -----------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 77, 127])
def test_the_exit_status_is_the_commands(stoker, status):
    shell(stoker, f"exit {status}", status=status)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT])
def test_a_command_ended_by_a_signal_ends_us_by_the_same(stoker, tmp_path, number):
    done = shell(stoker, f"kill -{int(number)} $$", "--json", tmp_path / "r", status=-number)
    told = json.loads((tmp_path / "r").read_text())
    assert told["exit"] == {"status": 0, "signal": int(number)} or told["exit"]["signal"] == number
    assert done.stderr


def test_streams_are_the_commands_and_words_go_to_standard_error(stoker):
    done = shell(stoker, "cat; echo error >&2", input="a\nb\n")
    assert done.stdout == "a\nb\n"
    assert done.stderr.startswith("error\n") and len(done.stderr) > len("error\n")


def test_a_command_may_close_its_streams(stoker):
    shell(stoker, "exec 0<&- 1>&- 2>&-; exit 5", status=5)


def test_streams_that_are_closed_stay_so_and_no_file_of_ours_takes_their_place(stoker, tmp_path):
    script = "ls /proc/$$/fd > seen; sleep 0.6; exit 7"
    closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", stoker.binary, "run", "--live")
    words = ("--trace", "t.json", "--", "sh", "-c", script)
    done = subprocess.run([*closed, *words], cwd=tmp_path, env=stoker.environment, timeout=30)
    assert done.returncode == 7
    assert not {"0", "2"} & set((tmp_path / "seen").read_text().split())
    json.loads((tmp_path / "t.json").read_text())


def test_a_script_without_its_first_line_runs_by_name(stoker, tmp_path, monkeypatch):
    (tmp_path / "plain-script").write_text("echo script $1\n")
    (tmp_path / "plain-script").chmod(0o755)
    path = f"{tmp_path}:{stoker.environment['PATH']}"
    monkeypatch.setitem(stoker.environment, "PATH", path)
    monkeypatch.setenv("PATH", path)
    assert stoker("run", "--", "plain-script", "a").stdout == "script a\n"


def test_a_run_in_a_run_is_the_inner_ones(stoker, tmp_path):
    script = 'echo "$STOKER_WATCH"; echo "$PYTHONPATH"; echo "$CUDA_INJECTION64_PATH"'
    inner = (stoker.binary, "run", "--json", tmp_path / "inner.json", "--", "sh", "-c", script)
    folder, path, library = stoker("run", "--", *inner).stdout.splitlines()
    old = stoker.environment.get("PYTHONPATH")
    assert path == f"{folder}/site" + (f":{old}" if old else "")
    assert library == f"{folder}/libstoker_inject.so"
    assert json.loads((tmp_path / "inner.json").read_text())["notices"] == []


def test_arguments_are_the_commands_own(stoker):
    script = "import sys; print(sys.argv[1:])"
    done = stoker("run", PYTHON, "-c", script, "--json", "-x", "", "a b", "--", "--help")
    assert done.stdout == "['--json', '-x', '', 'a b', '--', '--help']\n"
    assert stoker("run", "--", PYTHON, "-c", script, "--").stdout == "['--']\n"


def test_the_environment_is_ours_and_three_variables(stoker):
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(stoker("run", "--", PYTHON, "-c", script).stdout)
    added = {"STOKER_WATCH", "PYTHONPATH", "CUDA_INJECTION64_PATH"}
    for name in ("LC_CTYPE", "_", "SHLVL"):
        seen.pop(name, None)
    for name, value in stoker.environment.items():
        if name not in added | {"LC_CTYPE", "_", "SHLVL"}:
            assert seen.pop(name) == value
    assert set(seen) <= added and "STOKER_WATCH" in seen


def test_no_file_of_ours_is_open_in_the_command(stoker):
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    alone = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout
    assert stoker("run", "--", PYTHON, "-c", script).stdout == alone


def test_signals_have_their_usual_actions_in_the_command(stoker):
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    alone = subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
    ours = 0x180000000  # two that the C library keeps for itself

    def sets(printed):
        return [int(line.split()[1], 16) & ~ours for line in printed.splitlines()]

    assert sets(shell(stoker, script).stdout) == sets(alone)


def test_what_nohup_ignores_stays_ignored(stoker):
    done = subprocess.run(
        ["nohup", stoker.binary, "run", "--", "sh", "-c", "kill -HUP $$; echo lived"],
        capture_output=True, text=True, timeout=60, env=stoker.environment,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "lived\n"


COUNT = """
import signal, sys, time
heard = []
signal.signal(signal.SIG{name}, lambda number, frame: heard.append(number))
print("ready", flush=True)
time.sleep(0.6)
print(len(heard), flush=True)
sys.exit(9)
"""


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "USR1"])
def test_a_signal_sent_to_us_reaches_the_command_once(stoker, name):
    number = getattr(signal, f"SIG{name}")
    process = stoker.start(
        "run", "--", PYTHON, "-c", COUNT.format(name=name),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # nohup ignores one
    )  # fmt: skip
    ready(process)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert out == b"1\n" and process.returncode == 9


def on_terminal(stoker, *arguments):
    """Starts it in the foreground of a terminal of its own; gives its number and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(stoker.binary, [stoker.binary, *map(str, arguments)], stoker.environment)
    return pid, terminal


def read_until(terminal, words):
    seen = b""
    while words not in seen:
        seen += os.read(terminal, 4096)
    return seen


def read_rest(terminal):
    seen = b""
    while True:
        try:
            some = os.read(terminal, 4096)
        except OSError:
            return seen
        if not some:
            return seen
        seen += some


def test_ctrl_c_reaches_the_command_once_and_its_answer_counts(stoker):
    pid, terminal = on_terminal(stoker, "run", "--", PYTHON, "-c", COUNT.format(name="INT"))
    read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    seen = read_rest(terminal)
    assert b"1\r\n" in seen and b"2\r\n" not in seen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    os.close(terminal)


def test_ctrl_c_that_ends_the_command_ends_us_after_the_words(stoker, tmp_path):
    script = "print('ready', flush=True); import time; time.sleep(20)"
    arguments = ("run", "--json", tmp_path / "r", "--", PYTHON, "-c", script)
    pid, terminal = on_terminal(stoker, *arguments)
    read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    seen = read_rest(terminal)
    assert b"KeyboardInterrupt" in seen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
    assert json.loads((tmp_path / "r").read_text())["exit"]["signal"] == signal.SIGINT
    os.close(terminal)


def test_ctrl_z_stops_both_and_they_go_on_together(stoker):
    # In a group of its own below a session that we lead: a group without one is not stopped.
    process = stoker.start(
        "run", "--", "sh", "-c", "echo ready; sleep 0.3; exit 4",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
    )  # fmt: skip
    ready(process)
    os.killpg(process.pid, signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGCONT)
    process.communicate(timeout=30)
    assert process.returncode == 4


def test_the_command_is_in_our_group(stoker):
    done = stoker("run", "--", PYTHON, "-c", "import os; print(os.getpgrp())")
    assert int(done.stdout) == os.getpgrp()


# --- what cannot be run, what cannot be written ------------------------------------------------


def test_a_command_that_is_not_there_is_told_as_a_shell_does(stoker, tmp_path):
    assert "command not found" in stoker("run", "--", "no-such-command", status=127).stderr
    assert "/no/such" in stoker("run", "--", "/no/such", status=127).stderr
    (tmp_path / "plain").write_text("text")
    assert "cannot be run" in stoker("run", "--", tmp_path / "plain", status=126).stderr


@pytest.mark.parametrize("option", ["--json", "--trace"])
def test_an_output_that_cannot_be_written_is_told_before_the_start(stoker, tmp_path, option):
    made = tmp_path / "made"
    done = stoker("run", option, tmp_path / "no" / "r.json", "--", "touch", made, status=1)
    assert "r.json" in done.stderr and not made.exists()


def test_a_run_file_goes_into_a_pipe_whose_reader_waits(stoker, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    stoker("run", "--json", tmp_path / "pipe", "--", "sleep", "0.3")
    assert json.loads(reader.communicate(timeout=10)[0])["stoker_run"] == 1


def test_a_link_leads_to_the_run_file_and_stays_a_link(stoker, tmp_path):
    (tmp_path / "other").mkdir()
    for name, target in ("there", "other/old.json"), ("dangling", "other/new.json"):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "other/old.json").write_text("old")
    (tmp_path / "chain").symlink_to(tmp_path / "there")
    for name in ("chain", "dangling"):
        stoker("run", "--json", tmp_path / name, "--", "true")
    for name in ("chain", "there", "dangling"):
        assert (tmp_path / name).is_symlink()
        assert json.loads((tmp_path / name).read_text())["stoker_run"] == 1
    assert sorted(os.listdir(tmp_path / "other")) == ["new.json", "old.json"]


def test_links_that_lead_nowhere_are_told_before_the_start(stoker, tmp_path):
    (tmp_path / "round").symlink_to("round")
    made = tmp_path / "made"
    done = stoker("run", "--json", tmp_path / "round", "--", "touch", made, status=1)
    assert "symbolic links" in done.stderr and not made.exists()


def test_a_link_to_a_device_leaves_both_as_they_are(stoker, tmp_path):
    (tmp_path / "null").symlink_to("/dev/null")
    stoker("run", "--json", tmp_path / "null", "--", "true")
    assert (tmp_path / "null").is_symlink() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", ["-", "/dev/fd/1", "link"])
@pytest.mark.parametrize("to", ["file", "pipe"])
def test_the_run_file_follows_what_the_command_printed(stoker, tmp_path, name, to):
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    before = os.readlink("/dev/stdout")
    words = ("run", "--json", name, "--", "sh", "-c", "echo one; sleep 0.2; echo two")
    if to == "pipe":
        printed = stoker(*words, cwd=tmp_path).stdout
    else:
        with open(tmp_path / "log", "w") as log:
            log.write("zero\n")
            log.flush()
            assert stoker.start(*words, cwd=tmp_path, stdout=log).wait(timeout=30) == 0
        printed = (tmp_path / "log").read_text().removeprefix("zero\n")
    assert printed.startswith("one\ntwo\n{")
    assert json.loads(printed.removeprefix("one\ntwo\n"))["stoker_run"] == 1
    assert os.readlink("/dev/stdout") == before and (tmp_path / "link").is_symlink()


def test_the_run_file_goes_to_a_descriptor_that_is_open(stoker, tmp_path):
    script = 'exec 3>file; echo first >&3; "$0" run --json /dev/fd/3 -- true; echo last >&3'
    subprocess.run(["sh", "-c", script, stoker.binary], cwd=tmp_path, timeout=30, check=True)
    first, run, last, rest = (tmp_path / "file").read_text().split("\n")
    assert (first, last, rest) == ("first", "last", "") and json.loads(run)["stoker_run"] == 1


def test_a_trace_does_not_go_over_what_the_command_prints(stoker, tmp_path):
    with open(tmp_path / "log", "w") as log:
        log.write("before\n")
        log.flush()
        words = ("run", "--trace", "/dev/stdout", "--", "echo", "ran")
        process = stoker.start(*words, stdout=log, stderr=subprocess.PIPE, text=True)
        told = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "a file of its own" in told
    assert (tmp_path / "log").read_text() == "before\n"


@pytest.mark.parametrize("name", ["-", "/dev/fd/9", "/dev/stdin"])
def test_a_stream_that_cannot_be_written_is_told_before_the_start(stoker, tmp_path, name):
    script = 'exec >&- 9>&- </dev/null; exec "$0" run --json "$1" -- touch made'
    words = ["sh", "-c", script, stoker.binary, name]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "cannot write /dev/" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_run_file_in_a_folder_that_takes_no_new_one_is_told_before_the_start(stoker, tmp_path):
    folder = tempfile.mkdtemp(prefix="stoker-test-")  # those above tmp_path are root's alone
    try:
        shutil.copy(stoker.binary, f"{folder}/stoker")
        os.mkdir(f"{folder}/in")
        Path(f"{folder}/in/r.json").touch(mode=0o666)
        os.chmod(f"{folder}/in/r.json", 0o666)
        os.chmod(folder, 0o755)
        words = (f"{folder}/stoker", "run", "--json", f"{folder}/in/r.json", "--", "echo", "ran")
        done = subprocess.run(words, user=65534, capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and "r.json" in done.stderr and done.stdout == ""
    finally:
        shutil.rmtree(folder)


def test_a_command_that_cannot_run_leaves_traces_as_they_were(stoker, tmp_path):
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        stoker("run", "--trace", tmp_path / name, "--", "no-such-command", status=127)
    assert (tmp_path / "old").read_text() == "old" and not (tmp_path / "new").exists()


def test_a_report_without_the_package_is_told_before_the_start(stoker, tmp_path):
    made = tmp_path / "made"
    done = stoker("run", "--report", tmp_path / "r.html", "--", "touch", made, status=1)
    assert "pip install" in done.stderr and not made.exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "COMMAND is missing"),
        (["--"], "COMMAND is missing"),
        (["--seconds", "soon", "--", "true"], "a number"),
        (["--jsno", "x", "--", "true"], "did you mean --json?"),
        (["--json"], "needs an argument"),
    ],
)
def test_bad_usage_starts_nothing(stoker, arguments, words):
    assert words in stoker("run", *arguments, status=2).stderr


def test_a_full_disk_harms_neither_the_command_nor_its_status(stoker):
    done = shell(stoker, "sleep 0.2; exit 3", "--json", "/dev/full", status=3)
    assert "/dev/full" in done.stderr


def test_a_limit_on_files_ends_neither_us_nor_the_command(stoker, tmp_path):
    limited = ("sh", "-c", 'ulimit -f 100; exec "$@"', "sh", stoker.binary, "run")
    words = ("--json", tmp_path / "r", "--", "sh", "-c", "exit 5", "x" * 60_000)
    done = subprocess.run([*limited, *words], capture_output=True, text=True, timeout=30)
    assert done.returncode == 5 and "File too large" in done.stderr


# --- what is written -----------------------------------------------------------------------------


def run_file(stoker, tmp_path, *command, options=(), **rest):
    stoker("run", "--json", tmp_path / "run.json", *options, "--", *command, **rest)
    return json.loads((tmp_path / "run.json").read_text())


def test_the_run_file_tells_what_was_run_and_hides_secrets(stoker, tmp_path):
    told = run_file(stoker, tmp_path, "sh", "-c", "exit 3", "--api-key", "SECRET", status=3)
    assert told["stoker_run"] == 1
    assert told["command"] == ["sh", "-c", "exit 3", "--api-key", "***"]
    assert told["exit"] == {"status": 3, "signal": None}
    assert told["machine"]["cpus"] >= 1 and told["machine"]["memory_bytes"] > 0
    assert "SECRET" not in (tmp_path / "run.json").read_text()


def test_secrets_are_hidden_in_what_a_shell_is_given(stoker, tmp_path):
    script = (
        """: --lr=3 --token=SECRET --password 'SECRET x' a://b:SECRET@c 'x --accessToken SECRET'"""
    )
    told = run_file(stoker, tmp_path, "sh", "-c", script)
    shown = ": --lr=3 --token=*** --password *** a://b:***@c 'x --accessToken ***"
    assert told["command"] == ["sh", "-c", shown]


def test_our_memory_is_ours_and_not_that_of_who_starts_us(stoker, tmp_path):
    held = b"x" * (200 << 20)
    told = run_file(stoker, tmp_path, "true")
    assert len(held) > told["watching"]["rss_bytes"] * 3


def test_processes_of_the_command_are_told(stoker, tmp_path):
    script = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    end = time.process_time() + 0.5\n"
        "    while time.process_time() < end: pass\n"
        "    time.sleep(0.4); os._exit(0)\n"
        "os.wait()\n"
    )
    told = run_file(stoker, tmp_path, PYTHON, "-c", script)
    assert len(told["processes"]) == 2
    assert max(process["cpu_s"] for process in told["processes"]) == pytest.approx(0.5, abs=0.25)


def test_what_a_short_command_used_is_told_to_its_end(stoker, tmp_path):
    script = (
        "import time\n"
        "while time.process_time() < 0.1: pass\n"
        "open('/dev/null', 'wb').write(bytes(20_000_000))\n"
    )
    told = run_file(stoker, tmp_path, PYTHON, "-S", "-c", script)
    assert told["processes"][0]["write_calls_bytes"] == pytest.approx(20_000_000, rel=0.01)
    assert told["processes"][0]["cpu_s"] == pytest.approx(0.1, abs=0.05)


def test_what_nvml_tells_of_pcie_is_told_by_device(stoker, tmp_path, monkeypatch):
    simulated = BINARY.parent / "sim_cuda"
    if not simulated.exists():
        pytest.skip("the simulated NVML is not built")
    monkeypatch.setitem(stoker.environment, "LD_LIBRARY_PATH", str(simulated))
    told = run_file(stoker, tmp_path, "sleep", "2.4")  # the second way is asked for after two
    rates = {"pcie_received_bytes_s": 2000 * 1024, "pcie_sent_bytes_s": 1000 * 1024}
    ways = {way: {"mean": rate, "peak": rate} for way, rate in rates.items()}
    assert told["devices"] == [{"device": 0, **ways}]
    assert set(told["series"]["gpu_pcie_sent_bytes_s"]) - {None} == {1000 * 1024}
    assert told["series"]["gpu_pcie_sent_bytes_s"][0] is None


def test_a_hundred_workers_are_watched_cheaply(stoker, tmp_path):
    script = (
        "import os, time\n"
        "for _ in range(100):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(1.5); os._exit(0)\n"
        "for _ in range(100): os.wait()\n"
    )
    told = run_file(stoker, tmp_path, PYTHON, "-c", script)
    assert len(told["processes"]) >= 100
    assert told["watching"]["cpu_s"] < 0.2 * told["wall_s"]


@pytest.mark.parametrize("flag", ["-I", "-S", "-E", "-Is", "-uE", "-BSq"])
def test_python_that_keeps_the_hook_away_is_told(stoker, tmp_path, flag):
    told = run_file(stoker, tmp_path, PYTHON, flag, "-c", "import time; time.sleep(1.6)")
    (letter,) = set(flag) & set("ISE")
    assert any(f"started with -{letter}," in notice for notice in told["notices"])


def test_a_path_that_replaces_the_hooks_is_told(stoker, tmp_path):
    script = f"{PYTHON} -c 'import time; time.sleep(1.6)'"
    told = run_file(stoker, tmp_path, "sh", "-c", f"PYTHONPATH=src {script}; true")
    assert any("a PYTHONPATH of its own" in notice for notice in told["notices"])
    told = run_file(stoker, tmp_path, "sh", "-c", f"PYTHONPATH=src:$PYTHONPATH {script}; true")
    assert told["notices"] == []


def test_flags_of_the_script_and_those_that_keep_the_hook_are_not_told(stoker, tmp_path):
    script = "import time; time.sleep(1.6)"
    told = run_file(stoker, tmp_path, PYTHON, "-uB", "-X", "dev", "-c", script, "-I", "-S")
    assert told["notices"] == []


def test_an_injected_library_of_the_user_is_named(stoker, tmp_path, monkeypatch):
    monkeypatch.setitem(stoker.environment, "CUDA_INJECTION64_PATH", "/opt/other.so")
    told = run_file(stoker, tmp_path, "sh", "-c", "test $CUDA_INJECTION64_PATH = /opt/other.so")
    assert any("/opt/other.so" in notice for notice in told["notices"])


def test_watching_may_end_before_the_command(stoker, tmp_path):
    script = "sleep 1.4; test -e $STOKER_WATCH/stop && exit 6"
    options = ("--seconds", 1)
    told = run_file(stoker, tmp_path, "sh", "-c", script, options=options, status=6)
    assert any("first 1 second" in notice for notice in told["notices"])
    assert told["exit"]["status"] == 6 and told["wall_s"] > 1.3


# --- the folder of the run -----------------------------------------------------------------------


def folders():
    places = [os.environ.get("XDG_RUNTIME_DIR", "/dev/shm"), "/dev/shm", "/tmp"]
    return {folder for place in places for folder in glob.glob(f"{place}/stoker-run-*")}


def test_the_folder_of_the_run_is_private_and_gone_afterwards(stoker):
    done = shell(stoker, 'stat -c %a "$STOKER_WATCH"; echo "$STOKER_WATCH"')
    mode, folder = done.stdout.split()
    assert mode == "700" and not os.path.exists(folder)


def test_what_a_killed_run_leaves_is_removed_by_the_next_and_the_command_goes_on(stoker, tmp_path):
    script = f'echo ready; echo "$STOKER_WATCH" > {tmp_path}/where; sleep 1; touch {tmp_path}/end'
    process = stoker.start("run", "--", "sh", "-c", script, stdout=subprocess.PIPE)
    ready(process)
    time.sleep(0.2)
    process.kill()
    process.wait(timeout=10)
    folder = (tmp_path / "where").read_text().strip()
    assert os.path.isdir(folder)
    stoker("run", "--", "true")
    assert not os.path.exists(folder)
    deadline = time.monotonic() + 10
    while not (tmp_path / "end").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "end").exists()
    process.stdout.close()


# --- on a terminal -------------------------------------------------------------------------------


def test_a_line_tells_how_it_goes(stoker):
    pid, terminal = on_terminal(stoker, "run", "--live", "--", "sleep", "0.8")
    seen = read_rest(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"memory" in seen and b"\x1b[K\r" in seen
    os.close(terminal)

"""How the command is spoken to: options, hints, exit statuses, help, completion."""

import json
import os
import re
import subprocess

import pytest
import tars
from places import ROOT

COMMANDS = [
    *("check", "gen", "pack", "rescale", "index", "warm", "cache", "ls", "cat", "show"),
    *("verify", "stream", "run", "report", "version", "help"),
]


def test_no_command_is_bad_usage(stoker):
    done = stoker(status=2)
    assert done.stdout == "" and "a command is missing" in done.stderr


@pytest.mark.parametrize(
    "typed, meant",
    [("strem", "stream"), ("lss", "ls"), ("verfy", "verify"), ("versoin", "version")],
)
def test_an_unknown_command_gets_the_nearest_name(stoker, typed, meant):
    assert f"did you mean {meant}?" in stoker(typed, status=2).stderr
    assert f"did you mean {meant}?" in stoker("help", typed, status=2).stderr


def test_a_command_that_is_near_to_none_gets_no_guess(stoker):
    done = stoker("xylophone", status=2)
    assert "did you mean" not in done.stderr and "stoker help" in done.stderr


@pytest.mark.parametrize(
    "typed, meant",
    [("--bacth-size", "batch-size"), ("--batch", "batch-size"), ("--world_size", "world-size")],
)
def test_an_unknown_option_gets_the_nearest_name(stoker, typed, meant):
    done = stoker("stream", "x", typed, "3", status=2)
    assert f"did you mean --{meant}?" in done.stderr
    assert "stoker stream --help" in done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["ls"], "SRC is missing"),
        (["cat", "a", "b"], "missing"),
        (["gen"], "tensors"),
        (["gen", "pictures", "-o", "x"], "cannot generate pictures"),
        (["gen", "tensors"], "-o OUT is missing"),
        (["gen", "tensors", "-o", "x", "--dtype", "f17"], "a type"),
        (["gen", "tensors", "-o", "x", "--shape", "1,2,,3"], "a shape"),
        (["gen", "tensors", "-o", "x", "--shape", "1,1,1,1,1,1,1,1,1"], "a shape"),
        (["gen", "tensors", "-o", "x", "--shape", "0,3"], "at least 1"),
        (["gen", "tensors", "-o", "x", "--shards", "3", "--samples", "2"], "shards"),
        (["pack", "a"], "-o OUT is missing"),
        (["pack", "a", "-o", "b", "--to", "zip"], "tar|series was expected"),
        (["gen", "series"], "-o OUT is missing"),
        (["gen", "series", "-o", "x", "--shards", "3"], "--shards goes with gen tensors"),
        (["gen", "series", "-o", "x", "--dtype", "f32"], "--dtype goes with gen tensors"),
        (["gen", "tensors", "-o", "x", "--rows", "3"], "--rows goes with gen series"),
        (["gen", "tensors", "-o", "x", "--csv"], "--csv goes with gen series"),
        (["pack", "a", "-o", "b", "--shard-size", "many"], "a size"),
        (["pack", "a", "-o", "b", "--entity", "c"], "--entity goes with --to series"),
        (["pack", "a", "-o", "b", "--nan", "zero"], "--nan goes with --to series"),
        (["pack", "a", "-o", "b", "--to", "series", "--prefix", "c"], "--prefix goes with"),
        (["pack", "a", "-o", "b", "--to", "series", "--fields", "c"], "--fields goes with"),
        (["pack", "a", "-o", "b", "--to", "series", "--nan", "skip"], "error|drop|ffill|mean|zero"),
        (["pack", "a", "-o", "b", "--to", "series", "--scaler", "max"], "standard|minmax|robust"),
        (["pack", "a", "-o", "b", "--to", "series", "--scale", "never"], "stored|late"),
        (["pack", "a", "-o", "b", "--to", "series", "--window", "0"], "--window 0"),
        (["pack", "a", "-o", "b", "--to", "series", "--horizon", "0"], "--horizon 0"),
        (["pack", "a", "-o", "b", "--to", "series", "--features", "a,,b"], "names separated"),
        (["rescale"], "FOLDER is missing"),
        (["rescale", "a"], "--scaler is missing"),
        (["rescale", "a", "b", "--scaler", "none"], "too many"),
        (["ls", "a", "--window", "-3"], "a number"),
        (["stream", "a"], "--batch-size"),
        (["stream", "a", "--batch-size", "-1"], "a number"),
        (["stream", "a", "--batch-size", "4294967296"], "a number"),
        (["stream", "a", "--batch-size", "1", "--global-batch-size", "1"], "one of"),
        (["stream", "a", "--batch-size"], "needs an argument"),
        (["stream", "a", "--batch-size", "1", "--last", "first"], "auto|short|mask|drop"),
        (["stream", "a", "--batch-size", "1", "--shuffle=yes"], "takes no argument"),
        (["stream", "a", "--batch-size", "1", "--rank", "1"], "--world-size"),
        (["stream", "a", "--batch-size", "1", "--world-size", "0"], "--world-size"),
        (["stream", "a", "--batch-size", "1", "--resume", "f", "--epoch", "2"], "--epoch"),
        (["ls", "a", "--fields", "a,,b"], "names separated by commas"),
        (["version", "extra"], "too many"),
        (["help", "--completion", "fish"], "none|bash|zsh"),
    ],
)
def test_bad_usage_has_status_2_and_words(stoker, tmp_path, arguments, words):
    done = stoker(*arguments, status=2, cwd=tmp_path)
    assert words in done.stderr and done.stderr.startswith("stoker: ")
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_options_may_stand_anywhere_and_be_joined_with_their_value(stoker, tensors):
    source = tensors / "shards"
    plain = stoker("ls", source, "--json", "--limit", "2").stdout
    assert stoker("ls", "--limit=2", "--json", source).stdout == plain
    assert stoker("ls", "--json", "--limit=2", "--", source).stdout == plain
    assert len(plain.splitlines()) == 2


def test_a_letter_takes_its_value_with_or_without_a_space(stoker, tmp_path):
    small = ["--samples", 2, "--shards", 1, "--shape", "2"]
    stoker("gen", "tensors", "-o", tmp_path / "a", *small)
    stoker("gen", "tensors", f"-o{tmp_path / 'b'}", *small)
    stoker("gen", "tensors", f"--out={tmp_path / 'c'}", *small)
    made = [(tmp_path / name / "shard-0000.tar").read_bytes() for name in "abc"]
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(stoker, name):
    done = stoker(name, "--help")
    assert done.stdout.startswith(f"stoker {name} ")
    assert "Examples" in done.stdout and f"stoker {name}" in done.stdout.split("Examples")[1]
    assert "--json" in done.stdout and done.stderr == ""
    assert stoker(name, "-h").stdout == done.stdout == stoker("help", name).stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_help_lists_every_command(stoker):
    printed = stoker("help").stdout
    assert printed == stoker("--help").stdout == stoker("-h").stdout
    assert re.findall(r"^  (\w+) ", printed, re.M) == COMMANDS


def test_help_tells_tables_as_json(stoker):
    told = stoker.json("help")
    assert [command["name"] for command in told["commands"]] == COMMANDS
    names = [option["name"] for option in stoker.json("help", "stream")["commands"][0]["options"]]
    assert {"batch-size", "save-state", "stop-after", "resume", "order", "json"} <= set(names)


def test_version_is_that_of_the_header(stoker):
    words = (ROOT / "include" / "stoker" / "version.h").read_text()
    version = ".".join(re.findall(r"#define STK_VERSION_\w+ (\d+)", words))
    assert stoker("version").stdout.startswith(f"stoker {version}\n")
    assert stoker("--version").stdout == stoker("version").stdout
    told = stoker.json("version")
    assert told["version"] == version and "zlib" in told["libraries"]


def test_check_tells_groups_and_what_to_do(stoker):
    told = stoker.json("check")
    groups = [row["group"] for row in told["rows"]]
    assert {"machine", "io", "libraries", "formats", "codecs"} <= set(groups)
    together = [group for at, group in enumerate(groups) if at == 0 or groups[at - 1] != group]
    assert len(together) == len(set(together))
    for row in told["rows"]:
        assert set(row) == {"group", "name", "state", "value", "remedy"}
        assert row["state"] in ("good", "absent", "warn")
    printed = stoker("check").stdout
    assert all(row["name"] in printed for row in told["rows"])


def test_check_of_a_set_tells_what_it_holds(stoker, tensors):
    told = stoker.json("check", tensors / "shards")["dataset"]
    assert told["samples"] == 37 and told["objects"] == 3
    assert told["fields"] == {"npy": "float32 (4, 6, 3)", "cls": "int"}
    assert "float32 (4, 6, 3)" in stoker("check", tensors / "shards").stdout


def test_check_of_what_is_not_there_fails_but_tells_of_the_machine(stoker, tmp_path):
    done = stoker("check", tmp_path / "none", status=1)
    assert "machine" in done.stdout and "none" in done.stderr


@pytest.mark.parametrize("shell, path", [("bash", "stoker.bash"), ("zsh", "_stoker")])
def test_the_kept_completion_is_what_the_tables_give(stoker, shell, path):
    kept = (ROOT / "cli" / "completion" / path).read_text()
    assert stoker("help", "--completion", shell).stdout == kept, (
        f"make it anew: build/stoker help --completion {shell} > cli/completion/{path}"
    )


def bash_completes(stoker, *words):
    """What bash would offer for the last word."""
    script = ROOT / "cli" / "completion" / "stoker.bash"
    typed = " ".join(f"'{word}'" for word in ("stoker", *words))
    done = subprocess.run(
        ["bash", "--norc", "-c", f"source '{script}'; COMP_WORDS=({typed}); "
         f"COMP_CWORD={len(words)}; _stoker; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    return done.stdout.split()


def test_bash_completes_commands_options_and_choices(stoker):
    assert bash_completes(stoker, "ver") == ["verify", "version"]
    assert bash_completes(stoker, "stream", "x", "--batch-s") == ["--batch-size"]
    assert bash_completes(stoker, "help", "tr") == ["transforms"]
    assert bash_completes(stoker, "help", "sho") == ["show"]
    assert bash_completes(stoker, "stream", "x", "--io", "") == ["auto", "pread", "uring"]
    assert bash_completes(stoker, "gen", "t") == ["tensors"]
    assert bash_completes(stoker, "gen", "s") == ["series"]
    assert bash_completes(stoker, "pack", "x", "--scale", "") == ["stored", "late"]


def test_bash_completes_every_option_of_every_command(stoker):
    for command in stoker.json("help")["commands"]:
        offered = bash_completes(stoker, command["name"], "--")
        assert offered == [f"--{option['name']}" for option in command["options"]]


def test_a_reader_that_goes_away_ends_it_quietly(stoker, tensors):
    done = subprocess.run(
        ["bash", "-c", f"'{stoker.binary}' ls '{tensors}/shards' --json | head -1; "
         "echo ${PIPESTATUS[0]}"],
        capture_output=True, text=True, timeout=60, env=stoker.environment,
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout.splitlines()[0])["sample"] == 0
    assert done.stdout.splitlines()[-1] in ("0", "141")


def test_a_closed_pipe_is_status_141_without_words(stoker, tensors):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [stoker.binary, "ls", tensors / "shards"],
        stdout=write, stderr=subprocess.PIPE, timeout=60, env=stoker.environment,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_behind_standard_output_is_told(stoker, tensors):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [stoker.binary, "ls", tensors / "shards"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=stoker.environment,
        )  # fmt: skip
    assert done.returncode == 1 and "writing to standard output failed" in done.stderr


def test_a_disk_that_fills_up_midway_is_told(stoker, tmp_path):
    path = tars.write(tmp_path / "a.tar", tars.sample_members(2000, ("cls",)))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [stoker.binary, "ls", path, "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=stoker.environment,
        )  # fmt: skip
    assert done.returncode == 1 and "writing to standard output failed" in done.stderr

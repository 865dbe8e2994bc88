"""A C program is built against what `make install` made, as a user would build it."""

import re
import subprocess

import pytest

from .conftest import ROOT, clean_environment, run

EXAMPLE = ROOT / "examples" / "c"


def build_by_pkg_config(prefix, folder, *options):
    environment = clean_environment(PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    flags = run("pkg-config", "--cflags", "--libs", *options, "stoker", env=environment).split()
    if "--static" in options:
        flags = [f"{prefix}/lib/libstoker.a" if flag == "-lstoker" else flag for flag in flags]
    program = folder / "first_batch"
    run("cc", "-Wall", "-Wextra", "-Werror", EXAMPLE / "first_batch.c", "-o", program, *flags)
    return program, clean_environment(LD_LIBRARY_PATH=f"{prefix}/lib")


def build_static(prefix, folder):
    program, _ = build_by_pkg_config(prefix, folder, "--static")
    return program, clean_environment()


def build_by_cmake(prefix, folder):
    run("cmake", "-S", EXAMPLE, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", cwd=folder)
    run("cmake", "--build", folder)
    return folder / "first_batch", clean_environment()


@pytest.mark.parametrize("build", [build_by_pkg_config, build_static, build_by_cmake])
def test_an_example_built_against_the_installed_tree_prints_a_batch(
    prefix, shards, tmp_path, build
):
    program, environment = build(prefix, tmp_path)
    output = run(program, f"{shards}/shard-*.tar", env=environment, cwd="/")
    numbers = re.search(r"^samples((?: \d+){4})$", output, re.M)
    assert numbers and set(map(int, numbers[1].split())) <= set(range(8))
    assert re.search(r"npy +float32 \(4, 2, 3\)", output)
    assert re.search(r"cls +int64 \(4\)", output)


def test_the_example_says_what_is_wrong_and_ends_with_1(prefix, tmp_path):
    program, environment = build_by_pkg_config(prefix, tmp_path)
    done = subprocess.run(
        [program, tmp_path / "none.tar"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "none.tar" in done.stderr


def test_a_cmake_project_that_wants_another_version_is_refused(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES C)\n"
        "find_package(stoker 99.0 REQUIRED)\n"
    )
    done = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "99.0" in done.stderr


def test_only_names_that_begin_with_stk_are_exported(prefix):
    libraries = [prefix / "lib" / "libstoker.so", prefix / "lib" / "libstoker.a"]
    assert "all stk_*" in run(ROOT / "tools" / "check_exports.sh", *libraries)


def test_the_export_check_finds_a_stranger(tmp_path):
    (tmp_path / "x.c").write_text("int stk_good(void) { return 1; }\nint bad(void) { return 1; }\n")
    run("cc", "-shared", "-fPIC", "-o", tmp_path / "libx.so", tmp_path / "x.c")
    done = subprocess.run(
        [ROOT / "tools" / "check_exports.sh", tmp_path / "libx.so"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "bad" in done.stderr and "stk_good" not in done.stderr


def test_the_shared_library_is_versioned(prefix):
    version = run(prefix / "bin" / "stoker", "version").split()
    names = {path.name for path in (prefix / "lib").glob("libstoker.so*")}
    full = next(word for word in version if re.fullmatch(r"\d+\.\d+\.\d+", word))
    major = full.split(".")[0]
    assert names == {"libstoker.so", f"libstoker.so.{major}", f"libstoker.so.{full}"}
    dynamic = run("readelf", "-d", prefix / "lib" / "libstoker.so")
    assert f"[libstoker.so.{major}]" in dynamic


def test_the_tree_holds_completions_and_the_licence(prefix):
    for name in (
        "share/bash-completion/completions/stoker",
        "share/zsh/site-functions/_stoker",
        "share/doc/stoker/LICENSE",
    ):
        assert (prefix / name).is_file(), name

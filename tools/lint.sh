#!/bin/bash
# lint.sh [JOBS] -- runs every check that is no test; goes on after a failure, to show them all.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${1:-2}
failed=()

# check NAME COMMAND... -- one line when it passes, all of its output when it does not.
check()
{
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "lint: $name: ok"
    else
        echo "$output"
        echo "lint: $name: FAILED"
        failed+=("$name")
    fi
}

# Folders that do not exist are no failure of the formatting.
c_files()
{
    find include src inject cli plugins python tests tools examples bench -name '*.[ch]' \
        2> /dev/null
}
format() { c_files | xargs .venv/bin/clang-format --dry-run -Werror; }

# werror FOLDER PRESET OPTION... -- everything, tests included, with warnings as errors.
werror()
{
    local folder=$1 preset=$2
    shift 2
    cmake --preset "$preset" -B "$folder" -DSTOKER_WERROR=ON -DSTOKER_PYTHON=ON \
        -DPython_EXECUTABLE="$PWD/.venv/bin/python" "$@" &&
        cmake --build "$folder" -j "$jobs" --target all tests
}
# Each public header stands alone, in plain C11.
headers()
{
    local header
    for header in include/stoker/*.h; do
        echo 'extern int nothing;' | cc -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude \
            -include "$header" -x c -fsyntax-only - || return 1
    done
}
# The absent twins are compiled too.
bare()
{
    cmake --preset debug -B build/lint-bare -DCMAKE_BUILD_TYPE=None -DSTOKER_WERROR=ON \
        -DSTOKER_TESTS=OFF -DSTOKER_NVCC=OFF -DSTOKER_LIBURING=OFF -DSTOKER_NET=OFF \
        -DSTOKER_ZSTD=OFF -DSTOKER_JPEG=OFF -DSTOKER_PNG=OFF -DSTOKER_WEBP=OFF \
        -DSTOKER_SNDFILE=OFF -DSTOKER_SOXR=OFF -DSTOKER_VIDEO=OFF &&
        cmake --build build/lint-bare -j "$jobs"
}
exports() { tools/check_exports.sh build/libstoker.so build/libstoker.a; }

check clang-format format
check "include law" tools/check_includes.py
check "lengths and words" tools/check_source.py
check "ruff" .venv/bin/ruff check --quiet .
check "ruff format" .venv/bin/ruff format --check --quiet .
check "public headers" headers
# What is linted is what is tested next: the build of `make all`, which is strict from then on.
check "gcc -Werror" werror build release
# Clang warns before it optimises, GCC also while it does.
check "clang -Werror" werror build/lint-clang clang -DCMAKE_BUILD_TYPE=None -DSTOKER_NVCC=OFF
check "without optional libraries" bare
check exports exports

if [ ${#failed[@]} -gt 0 ]; then
    echo "lint: ${#failed[@]} failed: ${failed[*]}"
    exit 1
fi
echo "lint: passed"

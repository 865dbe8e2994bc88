#!/bin/bash
# fuzz.sh BUILD SECONDS [JOBS] -- runs each libFuzzer binary of BUILD for SECONDS, from its corpus,
# JOBS (1) of them at a time. What it finds new stays under BUILD; copy an input that broke
# something into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export build=$1 seconds=$2
export STOKER_PLUGINS=$build # where the video decoder was built

# try_target BINARY -- one line when it passes, the end of its log when it does not.
try_target()
{
    local target=$1 subject=${1##*/fuzz_} folders options
    mkdir -p "$build/found/$subject"
    folders=("$build/found/$subject")
    [ -d "tests/fuzz/corpus/$subject" ] && folders+=("tests/fuzz/corpus/$subject")
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0
        -artifact_prefix="$build/found/crash-$subject-")
    # Here it is FFmpeg that is tried, not code of ours: always the same inputs, so that a fault of
    # FFmpeg's that is found tomorrow is not taken for one of today's change.
    [ "$subject" = video ] && options+=(-seed=1)
    [ -f "tests/fuzz/$subject.dict" ] && options+=("-dict=tests/fuzz/$subject.dict")
    if ! "$target" "${options[@]}" "${folders[@]}" > "$build/$subject.log" 2>&1; then
        tail -n 60 "$build/$subject.log"
        echo "fuzz: $subject failed"
        return 1
    fi
    echo "fuzz: $subject: $(grep -E '^Done [0-9]+ runs' "$build/$subject.log")"
}
export -f try_target

targets=()
for target in "$build"/fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] && targets+=("$target")
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no targets in $build/fuzz" >&2; exit 1; }
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "${3:-1}" bash -c 'try_target "$1"' try_target
echo "fuzz: ${#targets[@]} targets passed"

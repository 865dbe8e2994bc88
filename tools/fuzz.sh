#!/bin/bash
# fuzz.sh BUILD SECONDS -- runs each libFuzzer binary of BUILD for SECONDS, from its corpus. What it
# finds new stays under BUILD; copy an input that broke something into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
seconds=$2
count=0
export STOKER_PLUGINS=$build # where the video decoder was built
for target in "$build"/fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    subject=${target##*/fuzz_}
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
        exit 1
    fi
    echo "fuzz: $subject: $(grep -E '^Done [0-9]+ runs' "$build/$subject.log")"
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "fuzz: no targets in $build/fuzz" >&2; exit 1; }
echo "fuzz: $count targets passed"

#!/bin/bash
# pytest.sh FOLDER... -- the tests of each folder, one to a CPU (four at most); then, one after the
# other, those marked `alone`. Goes on after a failure, to show them all.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
workers=$(nproc)
[ "$workers" -le 4 ] || workers=4
failed=0
for folder in "$@"; do
    echo "pytest $folder, $workers at a time"
    .venv/bin/python -m pytest -q -m 'not alone' -n "$workers" --dist worksteal "$folder" ||
        failed=1
    echo "pytest $folder, alone"
    .venv/bin/python -m pytest -q -m alone "$folder" || failed=1
done
exit $failed

#!/bin/sh
# run.sh [--data DIR] [--out DIR] -- the whole example; needs a python with torch and stoker.
exec "${PYTHON:-python3}" "$(dirname "$0")/run.py" "$@"

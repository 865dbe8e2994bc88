#!/bin/sh
# check_exports.sh LIBRARY... -- every name that a library gives to others begins with stk_.
set -eu
for library in "$@"; do
    case $library in
    *.a) dynamic= ;;
    *) dynamic=-D ;;
    esac
    # An undecorated nm line of a defined name is "address type name"; a version node has type A.
    names=$(nm $dynamic --defined-only --extern-only --format=posix "$library" |
        awk 'NF >= 2 && $2 != "A" { print $1 }' | sort -u)
    if [ -z "$names" ]; then
        echo "$library exports nothing" >&2
        exit 1
    fi
    strangers=$(printf '%s\n' "$names" | grep -v '^stk_' || true)
    if [ -n "$strangers" ]; then
        echo "$library exports names that do not begin with stk_:" >&2
        printf '  %s\n' $strangers >&2
        exit 1
    fi
    echo "$library: $(printf '%s\n' "$names" | wc -l) names, all stk_*"
done

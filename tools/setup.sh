#!/bin/bash
# setup.sh [check | all] -- what this machine needs to build and test Stoker.
#
#   check  says whether a C build is possible, and the line to run when it is not; installs nothing
#   all    installs missing system packages (Debian 12, Ubuntu 24.04), makes .venv with
#          requirements-dev.txt, and puts the package into it; when all is there it installs nothing
#
# Not root and no sudo without a password: prints the one line to run and stops with status 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "setup: $*"; }
die() { say "$*" >&2; exit 1; }

# --- system packages: looked for by what they bring, so that other ways of installing them count

need_command() { command -v "$1" > /dev/null || missing+=("$2"); }
need_library() { pkg-config --exists "$1" 2> /dev/null || missing+=("$2"); }

find_missing_for_build()
{
    command -v cc > /dev/null || missing+=(gcc libc6-dev) # gcc only recommends the headers
    need_command cmake cmake
    need_command ninja ninja-build
    need_command pkg-config pkg-config
    need_library zlib zlib1g-dev
    need_library jansson libjansson-dev
    need_library liburing liburing-dev
    need_library libcurl libcurl4-openssl-dev
    need_library libcrypto libssl-dev
    need_library libzstd libzstd-dev
    need_library libjpeg libjpeg-dev
    need_library libpng libpng-dev
    need_library libwebp libwebp-dev
    need_library sndfile libsndfile1-dev
    need_library soxr libsoxr-dev
    need_library libavformat libavformat-dev
    need_library libavcodec libavcodec-dev
    need_library libswscale libswscale-dev
}

# The sanitizers' and libFuzzer's runtime is a package of its own, named after Clang's version.
clang_runtime_package()
{
    local version
    if command -v clang > /dev/null; then
        version=$(clang -dumpversion)
        echo "libclang-rt-${version%%.*}-dev"
        return
    fi
    . /etc/os-release
    case "$ID:${VERSION_ID:-}" in
    debian:12) echo libclang-rt-14-dev ;;
    ubuntu:24.04) echo libclang-rt-18-dev ;;
    esac
}

can_link_fuzzer()
{
    local source='int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }'
    echo "$source" | clang -x c -fsanitize=fuzzer,address -o /dev/null - 2> /dev/null
}

# Reports are tested in a real browser. Debian has it as a package; Ubuntu's is a snap, which
# neither a container nor a test can start: there the tests that need one are skipped.
find_missing_browser()
{
    local name
    for name in chromium chromium-browser google-chrome; do
        command -v $name > /dev/null && return
    done
    . /etc/os-release
    if [ "$ID" = debian ]; then
        missing+=(chromium)
    else
        say "there is no Chromium here, and no package of it: reports are not tested in a browser"
    fi
}

find_missing_for_tests()
{
    need_command make make
    need_command tar tar
    need_command clang clang
    need_command ffmpeg ffmpeg
    PATH="$PATH:/usr/sbin" need_command nginx nginx-light
    need_library cmocka libcmocka-dev
    find_missing_browser
    can_link_fuzzer || missing+=($(clang_runtime_package))
    if ! command -v python3 > /dev/null; then
        missing+=(python3 python3-venv python3-dev)
        return
    fi
    python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
    [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ||
        missing+=(python3-dev)
}

install_packages()
{
    local as_root=() line="apt-get install -y --no-install-recommends $*"
    command -v apt-get > /dev/null ||
        die "there is no apt-get here; install what Debian calls: $*"
    if [ "$(id -u)" != 0 ]; then
        if ! sudo -n true 2> /dev/null; then
            say "system packages are missing; this is not root and has no free sudo. Run:"
            echo "  sudo $line"
            exit 1
        fi
        as_root=(sudo -n)
    fi
    say "installing with apt: $*"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q=2 < /dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $line -q=2 < /dev/null
    rm -f build/build.ninja build/*/build.ninja # configured without them
}

# --- .venv

check_python()
{
    python3 - << 'END' || exit 1
import sys
import sysconfig

if sys.version_info < (3, 11):
    sys.exit("setup: python3 is %d.%d; Stoker needs 3.11 or newer" % sys.version_info[:2])
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit("setup: python3 is a free-threaded build; Stoker needs one with the stable ABI")
END
}

pip_install()
{
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@" < /dev/null
}

make_venv()
{
    local stamp=.venv/.requirements wanted
    wanted="$(python3 -c 'import sys; print(sys.version)') $(cat requirements-dev.txt)"
    if [ -x .venv/bin/python ] && [ "$(cat $stamp 2> /dev/null)" = "$wanted" ]; then
        return
    fi
    say "installing with pip into .venv:" $(grep -v '^#' requirements-dev.txt)
    [ -x .venv/bin/python ] && .venv/bin/python -c '' 2> /dev/null || python3 -m venv --clear .venv
    pip_install "$(grep '^torch==' requirements-dev.txt)"
    pip_install -r requirements-dev.txt
    echo "$wanted" > $stamp
    changed=1
}

# scikit-build-core compiles in build/python, so that a second time only what changed is compiled.
install_package()
{
    local stamp=.venv/.package
    if [ -e $stamp ] && [ -z "$(find CMakeLists.txt pyproject.toml cmake include inject src cli \
        plugins python -name __pycache__ -prune -o -newer $stamp -print -quit)" ]; then
        return
    fi
    say "installing the package stoker into .venv"
    touch $stamp.new
    pip_install --no-build-isolation --no-deps .
    mv $stamp.new $stamp
    changed=1
}

# --- Azurite

# Azure's own emulator, for tests. It is an npm package: where npm or its registry is not to be had,
# Azure is tested against an imitation alone.
AZURITE=3.37.0

install_azurite()
{
    local stamp=.venv-azurite/.version
    [ "$(cat $stamp 2> /dev/null)" = $AZURITE ] && return
    if ! command -v npm > /dev/null; then
        say "there is no npm here: Azure is tested against an imitation, not against Azurite"
        return
    fi
    say "installing with npm into .venv-azurite: azurite@$AZURITE"
    if timeout 300 npm install --prefix .venv-azurite --no-audit --no-fund --loglevel=error \
        azurite@$AZURITE < /dev/null > /dev/null; then
        echo $AZURITE > $stamp
        changed=1
    else
        say "npm could not install it: those tests are skipped"
    fi
}

# ---

missing=()
find_missing_for_build
case "${1:-all}" in
check)
    if [ ${#missing[@]} -gt 0 ]; then
        say "a C build needs packages that are missing. Run \`make setup\`, or:"
        echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}"
        exit 1
    fi
    ;;
all)
    changed=0
    find_missing_for_tests
    if [ ${#missing[@]} -gt 0 ]; then
        install_packages "${missing[@]}"
        changed=1
    fi
    check_python
    make_venv
    install_package
    install_azurite
    [ $changed = 1 ] || say "everything is there"
    ;;
*) die "usage: tools/setup.sh [check | all]" ;;
esac

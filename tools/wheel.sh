#!/bin/bash
# wheel.sh -- builds the one wheel into dist/: stable ABI, its shared libraries bundled, for every
# Linux whose glibc is at least as old as the libraries of Debian 12 allow. FFmpeg's libraries stay
# out, for their licence: the decoder of videos is in the package and takes those of the system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH" # auditwheel looks for its tools there

rm -rf build/wheel
# Machine code of kernels for A100, H100 and B200, so that they need not be compiled where it runs.
.venv/bin/python -m build --wheel --no-isolation --outdir build/wheel \
    "-Ccmake.define.STOKER_CUDA_ARCHS=80;90;100" . > build/wheel.log 2>&1 ||
    { tail -n 40 build/wheel.log; exit 1; }
machine=$(uname -m)
repaired=
for glibc in 34 35 36; do
    if .venv/bin/python -m auditwheel repair --only-plat --plat "manylinux_2_${glibc}_$machine" \
        --exclude 'libav*.so.*' --exclude 'libsw*.so.*' \
        --wheel-dir build/wheel/repaired build/wheel/stoker-*.whl > build/auditwheel.log 2>&1; then
        repaired=$(echo build/wheel/repaired/stoker-*.whl)
        break
    fi
    grep -q 'too-recent versioned symbols' build/auditwheel.log || break
done
if [ -z "$repaired" ]; then
    cat build/auditwheel.log
    echo "wheel: auditwheel could not make it fit glibc 2.36" >&2
    exit 1
fi
case $repaired in
*-cp311-abi3-manylinux_2_3[456]_"$machine".whl) ;;
*) echo "wheel: unexpected tag: $repaired" >&2; exit 1 ;;
esac
mkdir -p dist
rm -f dist/stoker-*.whl
mv "$repaired" dist/
echo "wheel: $(echo dist/stoker-*.whl)"

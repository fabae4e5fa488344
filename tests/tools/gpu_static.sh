#!/usr/bin/env bash
# Compiles every program for GPUs that are not there (tests/tools/gpu_static.py): by clang of Debian, with NVIDIA's assembler
# and disassembler out of triton's wheel on PyPI (280 MB), and by Intel's compiler of Debian sid (tests/tools/debian_root.sh).
# Takes an hour the first time, then what has changed.
# Usage: tests/tools/gpu_static.sh [options of gpu_static.py]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/gpu_static/bin"
{ command -v clang-22 clang-21 clang-20 clang-19 && compgen -G '/usr/lib/clc/amdgcn-*amdhsa.bc'; } > /dev/null || {
    apt-get install -y --no-install-recommends clang-22 libclang-common-22-dev libclc-22
}
[ -e "$bin/nvdisasm" ] || {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    .venv/bin/python -m pip download --quiet --no-deps --dest "$work" triton
    mkdir -p "$bin"
    unzip -q -o -j "$work"/triton-*.whl '*/nvidia/bin/ptxas' '*/nvidia/bin/nvdisasm' '*/libdevice.10.bc' -d "$bin"
    chmod +x "$bin"/ptxas "$bin"/nvdisasm
}
tests/tools/debian_root.sh sid intel-ocloc libigdfcl2 libigc2 > /dev/null
.venv/bin/python tests/tools/gpu_static.py "$@"

#!/usr/bin/env bash
# Estimates how much of a processor of ARM the inner loops of kernels use (arm_loops.py), with the llvm-mca of a newer
# Debian, which is unpacked into a folder of its own (0.2 GB; nothing is installed).
# Usage: tools/arm_loops.sh [MODEL...]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(tools/debian_root.sh trixie llvm-19)
tiny=../shared/models/mlcommons-tiny
models=("$@")
[ $# -gt 0 ] || models=($tiny/{pretrainedResnet,pretrainedResnet_quant,vww_96_float,vww_96_int8,ad01_fp32}.tflite)
PYTHONPATH=$PWD/src:$PWD/tests .venv/bin/python tools/arm_loops.py "${models[@]}" -- "$root/lib64/ld-linux-x86-64.so.2" \
    --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/llvm-19/lib" "$root/usr/lib/llvm-19/bin/llvm-mca"

#!/usr/bin/env bash
# Runs Python, PoCL and litecl on a processor that is not there, by qemu's user emulation (Debian: apt-get install
# qemu-user; 7.2 knows AVX2, not AVX-512): real models against the interpreter, then a choice of the operators' device
# cases. cpuid is emulated, so numpy, PoCL and the keys of kept binaries see that processor. An hour for three
# processors at first, most of it compiling; binaries are kept in ~/.cache/litecl-tests for the next time.
# CPU: Nehalem (SSE4.2), SandyBridge (AVX), Haswell (AVX2), EPYC-Milan (AVX2) or what else `qemu-x86_64 -cpu help` has.
# Usage: tools/qemu_cpu.sh CPU [pytest's arguments, in place of all that]
set -euo pipefail
cpu=$1
shift
cd "$(dirname "$0")/.."
command -v qemu-x86_64 > /dev/null || { echo "qemu-x86_64 is not installed" >&2; exit 2; }
home="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/qemu-$cpu"
mkdir -p "$home"
export HOME="$home"
unset XDG_CACHE_HOME
# OpenBLAS takes a Nehalem of qemu's for a processor with AVX.
case $cpu in Nehalem | Westmere) export OPENBLAS_CORETYPE=Nehalem ;; esac
# What the emulator lacks of a processor it tells in a line for each and every process.
run() { qemu-x86_64 -cpu "$cpu" .venv/bin/python "$@" 2> >(grep -v "TCG doesn't support" >&2); }
if [ $# -gt 0 ]; then
    run -m pytest --nightly -q -p no:cacheprovider "$@"
    exit
fi
models=../shared/models/mlcommons-tiny
if [ -d "$models" ]; then
    run tools/models.py --device basic --device native "$models"/{ad01_fp32,pretrainedResnet,pretrainedResnet_quant,kws_ref_model,model_ToyCar_quant}.tflite
fi
cases="(ADD_N and three) or (SOFTMAX and 65537) or (LSTM and batch and 20 and 33) or (DEPTHWISE and INT8 and SAME)"
cases+=" or (CONV_2D and INT8 and stride and 1x1) or (CONV_2D and 8 and bits and 64 and 130) or (INT16 and 1x1)"
cases+=" or (TANH and edges) or (BATCH_MATMUL and adjoint and INT8) or (LOG_SOFTMAX and rank) or (CUMSUM and int32)"
run -m pytest --nightly -q -p no:cacheprovider tests/whole/test_ops.py -k "test_device and ($cases)"

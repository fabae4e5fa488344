#!/usr/bin/env bash
# Makes a pack for a processor of ARM here, and runs it by qemu-user, with numpy, flatbuffers and litecl alone: real models
# against the interpreter, and operators' device cases against LiteRT: every so many (0: none), those that an expression
# finds, or all, in parts. A file lists the parts that have passed at this commit, so a run that was broken off resumes.
# Usage: tools/native_arm.sh [NUMBER[+FIRST]|EXPRESSION|all [PROCESSOR]], every 40th and cortex-a76 unless given
# The emulated processor is that one, or QEMU_CPU (max has all that qemu knows).
# Needs qemu-user (Debian: apt-get install qemu-user) and the package ziglang.
set -euo pipefail
cases=${1:-40} processor=${2:-cortex-a76}
cd "$(dirname "$0")/.."
folder="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/native-arm-$processor"
export PYTHONPATH=$PWD/src
if [ "$cases" = all ]; then
    parts=100 failed=0 passed="$folder-passed-$(git rev-parse --short HEAD)"
    touch "$passed"
    for ((part = 0; part < parts; ++part)); do
        grep -qx "$part" "$passed" && continue
        if "$0" "$parts+$part" "$processor"; then echo "$part" >> "$passed"; else failed=$((failed + 1)); fi
    done
    echo "$(wc -l < "$passed") of $parts parts passed, $failed failed: $passed"
    exit $((failed > 0))
fi
models=() shared=../shared/models
if [ -d $shared ] && [[ $cases != *+* || $cases = *+0 ]]; then
    models=($shared/mlcommons-tiny/{kws_ref_model,ad01_int8,ad01_fp32,pretrainedResnet,pretrainedResnet_quant,vww_96_int8}.tflite
        $shared/MycroftAI-plugin-wake-word-precise-lite/hey_mycroft.tflite)
fi
.venv/bin/python tools/board_cases.py "$folder" "$cases" "${models[@]}"
.venv/bin/python -m litecl compile --dynamic-range reference "$folder"/*.tflite --for "aarch64-linux:$processor" --threads 2 \
    -o "$folder/arm.pack" --json > "$folder/compile.json"
ls -l "$folder/arm.pack"
QEMU_CPU=${QEMU_CPU:-$processor} tools/arm.sh tools/board_run.py "$folder" "$folder/arm.pack"

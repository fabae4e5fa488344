#!/usr/bin/env bash
# As native_arm.sh, for processors of 32 bits and for RISC-V: a pack is made here, and run in a Debian of that architecture,
# which is unpacked into a folder of its own (0.2 GB; nothing is installed) and entered as root by chroot, as qemu finds no
# files otherwise.
# Usage: tools/native_chroot.sh armhf|riscv64 [NUMBER|EXPRESSION [SUITE]], every 40th case and trixie unless given
# Needs qemu-user-static (Debian: apt-get install qemu-user-static) and the package ziglang.
set -euo pipefail
architecture=$1 cases=${2:-40} suite=${3:-trixie}
case $architecture in
    armhf) kind=armv7-linux qemu=qemu-arm-static libraries=/usr/lib/arm-linux-gnueabihf ;;
    riscv64) kind=riscv64-linux qemu=qemu-riscv64-static libraries=/usr/lib/riscv64-linux-gnu ;;
    *) echo "expected armhf or riscv64, got $architecture" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
root=$(ARCHITECTURE=$architecture tools/debian_root.sh "$suite" python3-numpy python3-flatbuffers)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/native-$kind"
export PYTHONPATH=$PWD/src
models=() shared=../shared/models
if [ -d $shared ]; then
    models=($shared/mlcommons-tiny/{kws_ref_model,ad01_int8,pretrainedResnet,pretrainedResnet_quant}.tflite
        $shared/MycroftAI-plugin-wake-word-precise-lite/hey_mycroft.tflite)
fi
.venv/bin/python tools/board_cases.py "$folder" "$cases" "${models[@]}"
.venv/bin/python -m litecl compile --dynamic-range reference "$folder"/*.tflite --for $kind --threads 2 -o "$folder/a.pack" --json > "$folder/compile.json"
cp "$(command -v $qemu)" "$root/qemu"
export root folder libraries
# shellcheck disable=SC2016  # expanded within the namespace
exec unshare --mount bash -c '
    for path in /proc /dev "$PWD" "$folder"; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
    mkdir -p "$root/tmp"
    export HOME=/tmp PYTHONHOME=/usr PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
    export LD_LIBRARY_PATH=$libraries/blas:$libraries/lapack
    exec chroot "$root" /qemu /usr/bin/python3 "$PWD/tools/board_run.py" "$folder" "$folder/a.pack"
'

#!/usr/bin/env bash
# Runs the operators' device cases in the simulator Oclgrind (Debian: apt-get install oclgrind), which takes litecl's
# launches for GPUs, checks every memory access and looks for data races between work-items. Takes some minutes.
# Usage: tests/tools/oclgrind.sh [pytest's arguments, in place of the device cases: tests/delegate/test_gpu_inverted.py ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
icd=/usr/lib/oclgrind/liboclgrind-rt-icd.so
[ -e "$icd" ] || { echo "oclgrind is not installed: no $icd" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendors"
echo "$icd" > "$work/vendors/oclgrind.icd"
# Oclgrind does not know the LLVM intrinsics that inlining, restrict and rounding lead to.
export OCL_ICD_VENDORS="$work/vendors/" PYOPENCL_BUILD_OPTIONS="-cl-opt-disable -Drestrict= -Dalways_inline=unused"
export HOME="$work" OCLGRIND_DATA_RACES=1
[ $# -gt 0 ] || set -- tests/whole/test_ops.py -k "test_device and Oclgrind and not FLOOR and not CEIL and not ROUND"
.venv/bin/python -m pytest -q -s -p no:cacheprovider "$@" 2>&1 | tee "$work/log"
if grep -aE "Invalid (read|write)|[Dd]ata race|divergence" "$work/log"; then
    echo "Oclgrind found faults" >&2
    exit 1
fi

#!/usr/bin/env bash
# Runs the operators' device cases in the simulator Oclgrind of Debian, which takes litecl's
# launches for GPUs, checks every memory access and looks for data races between work-items. Takes some minutes.
# Usage: tools/oclgrind.sh [pytest's arguments, in place of the device cases: tests/delegate/test_gpu_inverted.py ...]
set -euo pipefail
cd "$(dirname "$0")/.."
icd=/usr/lib/oclgrind/liboclgrind-rt-icd.so
[ -e "$icd" ] || apt-get install -y --no-install-recommends oclgrind
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendors"
echo "$icd" > "$work/vendors/oclgrind.icd"
# Oclgrind does not know the LLVM intrinsics that inlining, restrict and rounding lead to.
export OCL_ICD_VENDORS="$work/vendors/" PYOPENCL_BUILD_OPTIONS="-cl-opt-disable -Drestrict= -Dalways_inline=unused"
export HOME="$work" OCLGRIND_DATA_RACES=1
[ $# -gt 0 ] || set -- tests/whole/test_ops.py -k "test_device and Oclgrind and not FLOOR and not CEIL and not ROUND"
.venv/bin/python -m pytest --nightly -q -s -p no:cacheprovider "$@" 2>&1 | tee "$work/log"
# Groups hand on to each other in global memory by volatile accesses and atomics (PARTS, HANDED_ON), which Oclgrind takes
# for races: those of which both accesses are volatile are counted apart.
awk '
    function ended() { if (fault == "") return; if (accesses > 1 && accesses == volatiles) handed++; else print fault; fault = "" }
    /Invalid (read|write)|[Dd]ata race|divergence/ { ended(); fault = $0; accesses = volatiles = 0; next }
    /^\t *(%[A-Za-z0-9_.]+ = )?(load|store|call|atomic)/ { accesses++; if (/ volatile |atomic/) volatiles++ }
    END { ended(); printf "%d accesses of what groups hand on\n", handed > "/dev/stderr" }
' "$work/log" > "$work/faults"
cat "$work/faults"
echo "$(wc -l < "$work/faults") faults" >&2
[ ! -s "$work/faults" ]

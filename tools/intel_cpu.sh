#!/usr/bin/env bash
# Runs the operators' device cases on Intel's CPU runtime for OpenCL, which compiles and schedules kernels in its own
# way. Fetches it from PyPI (270 MB, proprietary licence) into a folder of its own. Takes some minutes.
# Usage: tools/intel_cpu.sh [pytest's arguments, or litecl and a command's, in place of the device cases]
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m venv "$work"
"$work/bin/pip" install --quiet intel-opencl-rt intel-cmplr-lib-rt
mkdir "$work/vendors"
ls "$work"/lib/libintelocl.so > "$work/vendors/intel.icd"
export OCL_ICD_VENDORS="$work/vendors" LD_LIBRARY_PATH="$work/lib"
if [ "${1:-}" = litecl ]; then
    .venv/bin/python -m "$@"
    exit
fi
[ $# -gt 0 ] || set -- --gaps tests/whole/test_ops.py -k "test_device and not pthread"
.venv/bin/python -m pytest --nightly -q -p no:cacheprovider "$@"

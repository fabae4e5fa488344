#!/usr/bin/env bash
# Runs the operators' device cases on Mesa's OpenCL of Debian 13, rusticl, which computes on the CPU and says that it is a
# GPU: 64 work-items a group, local memory of 32 KB, barriers, no float64 (tools/in_debian.sh). Takes 10 minutes.
# Usage: tools/rusticl.sh [pytest's arguments, or litecl and a command's, in place of the device cases]
set -euo pipefail
[ $# -gt 0 ] || set -- --gaps tests/whole/test_ops.py -k "test_device and llvmpipe"
settings=(RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu)
exec "$(dirname "$0")/in_debian.sh" trixie mesa-opencl-icd "${settings[@]}" -- "$@"

#!/usr/bin/env bash
# Runs the operators' device cases on the PoCL of a newer Debian: trixie has 6.0, sid had 7.1 in November 2026
# (tools/in_debian.sh). Takes 10 to 30 minutes.
# Usage: tools/pocl.sh SUITE [pytest's arguments, or litecl and a command's, in place of the device cases]
set -euo pipefail
suite=$1
shift
[ $# -gt 0 ] || set -- --gaps tests/whole/test_ops.py -k "test_device and cpu-"
exec "$(dirname "$0")/in_debian.sh" "$suite" pocl-opencl-icd -- "$@"

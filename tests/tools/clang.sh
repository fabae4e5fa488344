#!/usr/bin/env bash
# Checks the code of GPUs' kernels (tests/delegate/test_gpu_static.py), as far as no other compiler is needed, with another
# clang: one of a newer Debian. In November 2026 trixie had 19, sid 19, 21 and 22.
# Usage: tests/tools/clang.sh SUITE VERSION [pytest's arguments]
set -euo pipefail
suite=$1 version=$2
shift 2
exec "$(dirname "$0")/in_debian.sh" "$suite" "clang-$version" "libclang-common-$version-dev" "libclc-$version" -- \
    tests/delegate/test_gpu_static.py "$@"

#!/usr/bin/env bash
# Prints which branches of what reads other people's bytes no test takes: files, packs, sessions and requests.
#
# Usage: tools/coverage.sh PYTHON [PYTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
data=$(mktemp)
trap 'rm -f "$data"' EXIT
rooms=src/litecl/interpreter/file/*,src/litecl/delegate/native/pack*.py,src/litecl/generate/s*.py,src/litecl/serve/*
"$python" -m coverage run --branch --data-file="$data" --include="$rooms" -m pytest -q -p no:xdist \
    tests/interpreter/test_malformed_files.py tests/interpreter/test_model_file.py tests/interpreter/test_external_buffers.py \
    tests/delegate/test_pack_files.py tests/delegate/test_packs.py tests/generate/test_sessions.py \
    tests/generate/test_damaged_bundles.py tests/whole/test_serve.py "$@"
"$python" -m coverage report --data-file="$data" --show-missing

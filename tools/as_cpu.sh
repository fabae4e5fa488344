#!/usr/bin/env bash
# Runs a command whose Pythons take this machine for another processor: PoCL and the processor's own compiler compile for
# it, and litecl sees no instructions beyond its own. Binaries in the cache are told apart. PoCL of PyPI, Linux on x86-64.
# LiteRT sees no instructions beyond AVX2 as x86-64-v3 and znver3 (as_cpu/peer.py).
# CPU: x86-64, x86-64-v2, x86-64-v3, znver3, skylake-avx512 or cascadelake, as far as this machine has their
#   instructions; wide, an AVX2 machine whose device claims vectors of 16 floats; zen4, which PoCL 3.0 takes for a Zen 3.
# Usage: tools/as_cpu.sh CPU COMMAND...
#   tools/as_cpu.sh wide .venv/bin/python -m pytest --nightly tests/whole/test_ops.py -k test_device
#   tools/as_cpu.sh x86-64-v2 .venv/bin/python -m pytest tests/whole/test_ops.py -k 'test_device and native'
#   PYTHONPATH=tests tools/as_cpu.sh x86-64-v3 .venv/bin/python -m tools.peers
set -euo pipefail
export LITECL_AS_CPU=$1
PYTHONPATH="$(cd "$(dirname "$0")" && pwd)/as_cpu${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec "${@:2}"

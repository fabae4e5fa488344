#!/usr/bin/env bash
# mediapipe 1.2.3: `import mediapipe.tasks.python.metadata.metadata_writers` works, but none of its writers can be
# imported: metadata.py, which the wheel has, imports mediapipe.tasks.cc, which it lacks. It works in 0.10.14.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   imported mediapipe.tasks.python.metadata.metadata_writers
#   image_classifier: No module named 'mediapipe.tasks.cc'
#   image_segmenter: No module named 'mediapipe.tasks.cc'
#   object_detector: No module named 'mediapipe.tasks.cc'
#   text_classifier: No module named 'mediapipe.tasks.cc'

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mediapipe==1.2.3
"$folder/venv/bin/python" - <<'EOF'
import importlib

PACKAGE = "mediapipe.tasks.python.metadata.metadata_writers"
importlib.import_module(PACKAGE)
print("imported", PACKAGE)
for name in ("image_classifier", "image_segmenter", "object_detector", "text_classifier"):
    try:
        importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        print(f"{name}: {error}")
        assert error.name == "mediapipe.tasks.cc"
    else:
        raise AssertionError(f"{name} can be imported")
EOF

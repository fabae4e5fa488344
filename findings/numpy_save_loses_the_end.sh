#!/usr/bin/env bash
# numpy 2.2.6 and 2.4.6: numpy.save and ndarray.tofile raise nothing if the disk is full at the last bytes of a file.
# They write through C's FILE, whose last buffer (up to 4096 bytes) is written as it is closed; nobody asks whether
# that succeeded. Python's own write raises. Here a limit of the file's size stands for a full disk; on a tmpfs of
# 8 KiB, save raised nothing either.
#
# Seen, with Python 3.11 on x86-64 Linux (the script fails if it changes):
#   numpy 2.2.6: save wrote 4096 of 4128 bytes, and raised nothing
#   numpy 2.2.6: tofile wrote 4096 of 4100 bytes, and raised nothing
#   numpy 2.2.6: Python's write raised [Errno 27] File too large
#   (and the same of numpy 2.4.6)

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/show.py" <<'EOF'
import os
import resource
import sys

import numpy as np

path = os.path.join(sys.argv[1], "file.npy")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
np.save(path, np.arange(1000, dtype=np.float32))
saved = os.path.getsize(path)
print(f"numpy {np.__version__}: save wrote {saved} of 4128 bytes, and raised nothing")
np.arange(1025, dtype=np.float32).tofile(path)
written = os.path.getsize(path)
print(f"numpy {np.__version__}: tofile wrote {written} of 4100 bytes, and raised nothing")
try:
    with open(path, "wb") as file:
        file.write(bytes(4100))
except OSError as error:
    print(f"numpy {np.__version__}: Python's write raised {error}")
else:
    raise AssertionError("Python's write raised nothing")
assert saved == 4096 and written <= 4096
EOF
for version in 2.2.6 2.4.6; do
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet "numpy==$version"
    "$folder/venv/bin/python" "$folder/show.py" "$folder"
done

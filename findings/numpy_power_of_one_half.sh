#!/usr/bin/env bash
# numpy 2.4.6: numpy.power(x, 0.5) is not C's pow but a square root, and an array of exponents is pow: the same base
# and exponent give NaN or infinity, and -0 or 0, depending on the exponent's shape. numpy 2.2.6 gives pow for both;
# there only the operator x ** 0.5 is a square root.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes):
#   numpy 2.2.6: x = [-inf  -0.   4.]
#   math.pow(x, 0.5):                [inf, 0.0, 2.0]
#   np.power(x, [0.5, 0.5, 0.5]):    [inf  0.  2.]
#   np.power(x, 0.5):                [inf  0.  2.]
#   x ** 0.5:                        [nan -0.  2.]
#   numpy 2.4.6: x = [-inf  -0.   4.]
#   math.pow(x, 0.5):                [inf, 0.0, 2.0]
#   np.power(x, [0.5, 0.5, 0.5]):    [inf  0.  2.]
#   np.power(x, 0.5):                [nan -0.  2.]
#   x ** 0.5:                        [nan -0.  2.]

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/show.py" <<'EOF'
import math

import numpy as np

x = np.array([-np.inf, -0.0, 4.0])
with np.errstate(invalid="ignore"):
    number, array, operator = np.power(x, 0.5), np.power(x, np.full(3, 0.5)), x**0.5
c = [math.pow(value, 0.5) for value in x]
print(f"numpy {np.__version__}: x = {x}")
print("math.pow(x, 0.5):               ", c)
print("np.power(x, [0.5, 0.5, 0.5]):   ", array)
print("np.power(x, 0.5):               ", number)
print("x ** 0.5:                       ", operator)


def same(a, b):
    return np.array_equal(a, b, equal_nan=True) and (np.signbit(a) == np.signbit(b))[1:].all()


root = [math.nan, -0.0, 2.0]
assert same(array, c) and same(operator, root)
assert same(number, c if np.__version__ == "2.2.6" else root)
EOF
for version in 2.2.6 2.4.6; do
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet "numpy==$version"
    "$folder/venv/bin/python" "$folder/show.py"
done

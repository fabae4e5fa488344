"""How far results may be from those expected: one table by element type, 0 for all others.

Relative to the expected output's largest magnitude. LiteRT, numpy and a device add up in other orders.
"""

INTERPRETER = {"float16": 1e-3, "float32": 1e-5, "float64": 1e-6, "complex64": 1e-5, "complex128": 1e-6}
DEVICE = INTERPRETER | {"float32": 1e-4}

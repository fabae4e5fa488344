"""Operators on quantized tensors, in files named like those for floats."""

"""Operators on quantized tensors, in files of the same names as those of floats."""

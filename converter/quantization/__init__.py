"""Quantizes a finished ``Model`` to integers or float16. Knows no TensorFlow."""

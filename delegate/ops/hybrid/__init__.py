"""Operators on floats with constant integer weights; the table of them all."""

from litecl.delegate.kit.found import device_ops

CL_OPS = device_ops(__name__, __path__)

"""Comparing and combining specs of one tensor where several paths lead to it."""

from dataclasses import replace

from litecl.interpreter.tensor import TensorSpec


def common(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """Return what two specs of one tensor agree on; a shape or a value that differs becomes unknown."""
    return replace(a, shape=a.shape if a.shape == b.shape else None, data=a.data if a.data is b.data else None)


def same(a: TensorSpec, b: TensorSpec) -> bool:
    """Return whether two specs of one tensor are the same."""
    return a.shape == b.shape and a.data is b.data

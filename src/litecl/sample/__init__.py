"""A sample: a small classifier of drawn digits, which litecl trains, and images for it."""

from litecl.sample.folder import Sample, write

__all__ = ["Sample", "write"]

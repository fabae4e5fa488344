"""A sample: a small classifier of drawn digits, trained by litecl, with images for it."""

from litecl.sample.folder import Sample, write

__all__ = ["Sample", "write"]

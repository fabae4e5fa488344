"""Converts StableHLO, the form of JAX' models, to TensorFlow operators; jaxlib parses it.

``program`` reads a module; the other files are tables of rules. A rule takes an operation and its operands, and returns
its result or a list of results. It raises NotImplementedError that says what it doesn't support.
"""

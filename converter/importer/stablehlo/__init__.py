"""StableHLO, in which JAX's models come, as TensorFlow's operators; jaxlib reads it.

``program`` reads a module; the other files are tables of rules. A rule takes an operation and its operands and returns
its result, or a list of several. It raises NotImplementedError that says what it does not know of the operator.
"""

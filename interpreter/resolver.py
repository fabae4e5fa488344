"""TFLite's names for sets of kernels."""

import enum
from typing import Any

from litecl.interpreter.errors import ModelError


@enum.unique
class OpResolverType(enum.Enum):
    """The kernel sets of TFLite's interpreter. litecl has one: the reference kernels, in numpy.

    An interpreter computes the same with each. If litecl replaces another package (``install_as``), AUTO and
    BUILTIN include a delegate, as in TFLite; the others do not.
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def resolver(given: Any) -> OpResolverType:
    """Return the requested resolver, of this enumeration or TFLite's. Raises ModelError for anything else."""
    named = OpResolverType.__members__.get(getattr(given, "name", ""))
    if named is None or not isinstance(given, enum.Enum):
        choices = ", ".join(OpResolverType.__members__)
        raise ModelError(f"experimental_op_resolver_type: expected an OpResolverType ({choices}), got {given!r:.100}")
    return named

"""The OpenCL delegate: parts of a model, claimed with reasons and run on a device."""

from litecl.delegate.delegate import CLDelegate
from litecl.delegate.report import DelegationReport

__all__ = ["CLDelegate", "DelegationReport"]

"""The OpenCL delegate: parts of a model, claimed with reasons and run on a device.

``CLDelegate`` is imported when it is first asked for: claims, lowerings and plans need no OpenCL.
"""

from typing import TYPE_CHECKING, Any

from litecl.delegate.cl_op import Call, ClOp, Launch, Refusal
from litecl.delegate.progress import BuildStep
from litecl.delegate.report import DelegationReport
from litecl.delegate.tuning import Tuning

if TYPE_CHECKING:
    from litecl.delegate.delegate import CLDelegate

__all__ = ["BuildStep", "CLDelegate", "Call", "ClOp", "DelegationReport", "Launch", "Refusal", "Tuning"]


def __getattr__(name: str) -> Any:
    if name != "CLDelegate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from litecl.delegate.delegate import CLDelegate

    return CLDelegate

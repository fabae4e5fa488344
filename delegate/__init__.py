"""The delegate: parts of a model, claimed with reasons and run on a device. Back ends are imported when used."""

from litecl.delegate.cl_op import Call, ClOp, Launch, Refusal
from litecl.delegate.delegate import CLDelegate
from litecl.delegate.progress import BuildStep
from litecl.delegate.report import DelegationReport
from litecl.delegate.tuning import GroupTile, Schedule, TileShape, Tuning

__all__ = [
    "BuildStep",
    "CLDelegate",
    "Call",
    "ClOp",
    "DelegationReport",
    "GroupTile",
    "Launch",
    "Refusal",
    "Schedule",
    "TileShape",
    "Tuning",
]

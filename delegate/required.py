"""Requires that the device runs every node of a model."""

from litecl.delegate.report import DelegationReport
from litecl.interpreter.errors import DelegateError


def require_all(asked_by: str, report: DelegationReport | None) -> None:
    """Raise DelegateError, prefixed with ``asked_by``, if the CPU runs a node. report: None means that it runs all."""
    if report is None:
        raise DelegateError(f"{asked_by}: the CPU was selected (--cpu)")
    left = [row for row in report.nodes if not row.claimed]
    if left:
        ops = {row.reason: sorted({other.op for other in left if other.reason == row.reason}) for row in left}
        reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in ops.items())
        raise DelegateError(f"{asked_by}: the CPU runs {len(left)} of {len(report.nodes)} nodes. {reasons}")

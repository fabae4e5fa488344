"""Products of float activations with integer weights in the device's default mode, with zero points for activations."""

from dataclasses import replace

from litecl.cases import hybrid
from litecl.interpreter.dynamic_range import is_dynamic
from litecl.verify.check import Check, of_case

_QUICK = 6  # every sixth case is in a quick run

CHECKS: tuple[Check, ...] = tuple(
    replace(
        of_case(case, f"{case.op.name}/asymmetric: {case.name}"),
        options={"dynamic_range": "asymmetric"},
        quick=number % _QUICK == 0,
    )
    for number, case in enumerate(case for case in hybrid.CASES if is_dynamic(case.model()))
)

"""Checks of more than one operator: control flow, recurrent layers, ways of use, special values and whole models."""

from litecl.verify.check import Check
from litecl.verify.scenarios import control, elementwise, images, recurrent, use

SCENARIOS: tuple[Check, ...] = (
    *elementwise.CHECKS,
    *control.CHECKS,
    *recurrent.CHECKS,
    *images.CHECKS,
    *use.CHECKS,
)

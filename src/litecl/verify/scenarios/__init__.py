"""Checks beyond single operators: control flow, recurrent layers, models, usage patterns, dynamic range."""

from litecl.verify.check import Check
from litecl.verify.scenarios import asymmetric, control, elementwise, images, language, recurrent, use

SCENARIOS: tuple[Check, ...] = (
    *elementwise.CHECKS,
    *control.CHECKS,
    *recurrent.CHECKS,
    *language.CHECKS,
    *images.CHECKS,
    *use.CHECKS,
    *asymmetric.CHECKS,
)

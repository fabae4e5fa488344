"""Checks of more than one operator: control flow, recurrent layers, language models, ways of use, whole models."""

from litecl.verify.check import Check
from litecl.verify.scenarios import control, elementwise, images, language, recurrent, use

SCENARIOS: tuple[Check, ...] = (
    *elementwise.CHECKS,
    *control.CHECKS,
    *recurrent.CHECKS,
    *language.CHECKS,
    *images.CHECKS,
    *use.CHECKS,
)

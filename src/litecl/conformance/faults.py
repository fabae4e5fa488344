"""Attributes failing checks of a runtime to its known faults."""

import math
from collections.abc import Mapping
from typing import Any

from litecl.conformance import litert_faults, tflite_runtime_faults
from litecl.conformance.known import LITERT_PACKAGE
from litecl.interpreter.graph import Model
from litecl.verify.record import Row

_PACKAGES = {LITERT_PACKAGE: litert_faults, tflite_runtime_faults.PACKAGE: tflite_runtime_faults}


def known_fault(row: Row, model: Model, runtime: Mapping[str, Any], *, is_smallest: bool = True) -> str | None:
    """Describe the runtime's known fault that a failing check shows; None for a new one.

    is_smallest: the model is minimal, without right parts; else only faults by check name or with a bounded error fit.
    """
    table = _PACKAGES.get(runtime["platform"])
    if table is None:
        return None
    named = (f for f in table.FAULTS if runtime["name"] in f.runtimes and f.is_in(runtime["driver"], table.NEWEST))
    fitting = (fault for fault in named if is_smallest or fault.checks or math.isfinite(fault.most))
    return next((fault.text for fault in fitting if fault.explains(row, model)), None)

"""Which known fault a failing check of a runtime shows."""

import math
from collections.abc import Mapping
from typing import Any

from litecl.conformance import litert_faults, tflite_runtime_faults
from litecl.conformance.known import LITERT_PACKAGE
from litecl.interpreter.graph import Model
from litecl.verify.record import Row

_PACKAGES = {LITERT_PACKAGE: litert_faults, tflite_runtime_faults.PACKAGE: tflite_runtime_faults}


def known_fault(row: Row, model: Model, runtime: Mapping[str, Any], *, is_smallest: bool = True) -> str | None:
    """Return the known fault of a runtime that a failing check shows, in words; None for a new one.

    is_smallest: that nothing in the model is right; else it may show a fault only if its error is small.
    """
    table = _PACKAGES.get(runtime["platform"])
    if table is None:
        return None
    named = (f for f in table.FAULTS if runtime["name"] in f.runtimes and f.is_in(runtime["driver"], table.NEWEST))
    fitting = (fault for fault in named if is_smallest or fault.checks or math.isfinite(fault.most))
    return next((fault.told for fault in fitting if fault.explains(row, model)), None)

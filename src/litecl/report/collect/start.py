"""Measures how long a new process takes from its start to its first result, by phase."""

import json
import pickle
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.isolated import answered
from litecl.report.facts import Phase, Start

_FOLDERS = {"cache_dir": "litecl", "POCL_CACHE_DIR": "pocl"}
_PHASES = {
    "open": "open the device",
    "partition": "partition",
    "plan": "plan and pack weights",
    "load": "load programs from the cache",
    "compile": "compile",
    "upload": "upload and bind",
}


def starts(
    content: bytes, inputs: Mapping[str, Array], delegate: Mapping[str, Any], numbers: Numbers = "reference"
) -> tuple[Start, ...]:
    """Return two starts: with empty program caches (litecl's and PoCL's), and with the caches filled by the first.

    delegate: keywords of ``CLDelegate``. numbers: as for ``Interpreter``. Raises LiteclError if the process fails.
    """
    with tempfile.TemporaryDirectory(prefix="litecl_report_") as folder:
        kept = str(Path(folder) / _FOLDERS["cache_dir"])
        request = pickle.dumps((content, dict(inputs), {**delegate, "cache_dir": kept}, numbers))
        environment = {"POCL_CACHE_DIR": str(Path(folder) / _FOLDERS["POCL_CACHE_DIR"])}
        Path(environment["POCL_CACHE_DIR"]).mkdir()
        return tuple(_start(caches, request, environment) for caches in ("empty", "filled"))


def _start(caches: str, request: bytes, environment: Mapping[str, str]) -> Start:
    start_s = time.perf_counter()
    seconds_of: dict[str, float] = answered(f"{__name__}.child", request, "a start of the model", environment)
    total_s = time.perf_counter() - start_s
    within = sum(seconds_of.values())
    phases = [Phase("start Python and import", max(0.0, total_s - within))]
    return Start(caches, (*phases, *(Phase(name, seconds) for name, seconds in seconds_of.items())), total_s)


def child() -> None:
    """Prepare the model from stdin and run it once; print the seconds of each phase as JSON."""
    from litecl.delegate import CLDelegate, DelegationReport
    from litecl.interpreter import Interpreter
    from litecl.perf.feeds import prepare

    content, inputs, delegate, numbers = pickle.loads(sys.stdin.buffer.read())
    start_s = time.perf_counter()
    interpreter = Interpreter(content, delegates=[CLDelegate(**delegate)], numbers=numbers)
    read_s = time.perf_counter() - start_s
    prepare(interpreter, inputs)
    prepared_s = time.perf_counter() - start_s - read_s
    phases = DelegationReport.of(interpreter).phases
    invoked_s = time.perf_counter()
    interpreter.invoke()
    first_s = time.perf_counter() - invoked_s
    named = {words: phases[name] for name, words in _PHASES.items() if name in phases}
    rest_s = max(0.0, prepared_s - sum(named.values()))
    print(json.dumps({"read the model": read_s, "propagate shapes": rest_s, **named, "first run": first_s}))

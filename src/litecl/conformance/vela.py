"""Vela, Arm's compiler for Ethos-U NPUs: how many operators of a file it places on the NPU, and which not.

It compiles for its default, an Ethos-U55 of 256 multiply-adds per cycle.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litecl.conformance.printed import printed
from litecl.delegate.naming import counted
from litecl.interpreter.errors import LiteclError, MissingExtra

_COUNTS = re.compile(r"^(CPU|NPU) operators = (\d+)", re.MULTILINE)
_LEFT = re.compile(r"^Warning \(supported operators\) operator: .*\nReason: (.*)(?:\n(.+))?", re.MULTILINE)
_TENSOR = re.compile(r" \([^()]*\)$")  # the tensor that a reason is about


@dataclass(frozen=True)
class Placement:
    """How many operators Vela places on the NPU and leaves to the CPU, and why, each reason once."""

    npu: int
    cpu: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        left = f", {self.cpu} on the CPU: {'; '.join(self.reasons)}" if self.cpu else ""
        return f"{counted(self.npu, 'operator')} on the NPU{left}"


def place(content: bytes) -> Placement:
    """Compile a file. Raises LiteclError for one that Vela refuses."""
    vela, error = module(), ""
    with tempfile.TemporaryDirectory() as folder, printed() as lines:
        (path := Path(folder, "model.tflite")).write_bytes(content)
        try:
            error = vela.main([str(path), "--output-dir", folder]) or ""
        except (Exception, SystemExit) as raised:  # of any type
            error = " ".join(str(raised).split()) or type(raised).__name__
    text = "\n".join(lines)
    counts = {name: int(number) for name, number in _COUNTS.findall(text)}
    if error or {*counts} != {"CPU", "NPU"}:
        told = [line for line in lines if line.startswith("Error")]
        raise LiteclError(f"vela: {told[0] if told else error}")
    reasons = [f"{_TENSOR.sub('', reason)}{rule and f': {rule}'}" for reason, rule in _LEFT.findall(text)]
    return Placement(counts["NPU"], counts["CPU"], tuple(dict.fromkeys(reasons)))


def module() -> Any:
    """Import the package. Raises MissingExtra if it isn't installed."""
    try:
        from ethosu.vela import vela
    except ImportError as error:
        raise MissingExtra(f"runtime vela: pip install ethos-u-vela: {error}") from error
    return vela

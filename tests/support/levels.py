"""Processors of a lower level, emulated by this machine's."""

from dataclasses import replace

import pytest

from litecl.delegate import devices
from litecl.delegate.native import compiler


def stand_in(monkeypatch: pytest.MonkeyPatch, level: str, macro: str) -> None:
    """Compile for a level, by clang's name. macro: of an instruction set that it needs. Skips where this lacks it."""
    found = compiler.found(None)
    if found is None or macro not in found.macros:
        pytest.skip(f"no compiler for a processor of {level}")
    lower = replace(found, target=(f"-march={level}",), known=None)
    monkeypatch.setattr(compiler, "found", lambda directory=None: lower)
    monkeypatch.setattr(devices, "_DEVICES", {})

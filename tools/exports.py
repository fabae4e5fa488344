"""Exports models, runs them by Node or as C programs on random inputs, and compares all outputs with the interpreter's.

Usage: PYTHONPATH=tests python -m tools.exports web|c FILE...   (a line a model: right, refused, or wrong)
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from export.test_web import WebModule
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from support.exported import CProgram, check, random_steps

_MADE = {"web": WebModule, "c": CProgram}


def _outcome(kind: str, path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            keys = [*Interpreter(path).get_signature_list()]
            chosen = keys[0] if len(keys) > 1 else None
            made = _MADE[kind](path, Path(folder), signature=chosen, dynamic_range="reference")
        except LiteclError as error:
            return f"refused: {type(error).__name__}: {str(error)[:300]}"
        size = sum(
            (Path(folder) / name).stat().st_size for name in ("model.wasm", "model.a") if (Path(folder) / name).exists()
        )
        try:
            check(made, random_steps(made, 2))
        except AssertionError as error:
            return f"wrong: {' '.join(str(error).split())[:200]}"
    code = size - len(made.drawn.constants)
    return f"right, {size // 1000} kB, of it {code // 1000} kB code, {made.drawn.arena_bytes // 1000} kB arena"


def main(kind: str, *files: str) -> None:
    """Print a line a model, then the counts."""
    counts = Counter[str]()
    for file in files:
        try:
            outcome = _outcome(kind, Path(file))
        except Exception as error:
            outcome = f"failed: {type(error).__name__}: {str(error)[:200]}"
        counts[outcome.split(":")[0].split(",")[0]] += 1
        print(f"{file}: {outcome}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])

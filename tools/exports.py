"""Exports models, runs them in Node, in Chromium or as C programs on random inputs, and compares all outputs with the
interpreter's.

Usage: PYTHONPATH=tests python -m tools.exports web|chromium|relaxed|c FILE...

web: in Node; relaxed: in Chromium, with relaxed SIMD and weights apart. Prints a line a model: right, refused, or
wrong.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from support.browser import Browser
from support.exported import CProgram, check, random_steps
from support.web_module import WebModule


def _outcome(kind: str, exported: Callable[..., Any], path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            keys = [*Interpreter(path).get_signature_list()]
            chosen = keys[0] if len(keys) > 1 else None
            made = exported(path, Path(folder), signature=chosen, dynamic_range="reference")
        except LiteclError as error:
            return f"refused: {type(error).__name__}: {str(error)[:300]}"
        size = sum(
            (Path(folder) / name).stat().st_size for name in ("model.wasm", "model.a") if (Path(folder) / name).exists()
        )
        try:
            check(made, random_steps(made, 2))
        except AssertionError as error:
            return f"wrong: {' '.join(str(error).split())[:200]}"
    code = size - len(made.drawn.constants) * (kind != "relaxed")
    return f"right, {size // 1000} kB, of it {code // 1000} kB code, {made.drawn.arena_bytes // 1000} kB arena"


def main(kind: str, *files: str) -> None:
    """Print a line a model, then the counts."""
    counts = Counter[str]()
    relaxed = kind == "relaxed"
    with Browser() if relaxed or kind == "chromium" else nullcontext() as browser:
        exported = CProgram if kind == "c" else partial(WebModule, browser=browser, relaxed=relaxed, apart=relaxed)
        for file in files:
            try:
                outcome = _outcome(kind, exported, Path(file))
            except Exception as error:
                outcome = f"failed: {type(error).__name__}: {str(error)[:200]}"
            counts[outcome.split(":")[0].split(",")[0]] += 1
            print(f"{file}: {outcome}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])

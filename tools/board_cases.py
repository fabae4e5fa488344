"""Writes models with inputs and expected outputs to a folder, for ``board_run.py``: files given, against the
interpreter, and the operators' device cases, against LiteRT's reference kernels: every so many, from the first or a
later one on, or those whose names a regular expression finds.

Usage: tools/board_cases.py FOLDER NUMBER[+FIRST]|EXPRESSION [MODEL...]
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from litecl.cases import Case
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.feeds import random_inputs
from support import compare
from support.all_cases import DEVICE_CASES, content, expected


def main(folder: Path, wanted: str, models: list[Path]) -> None:
    """Write them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("*.tflite"), *folder.glob("*.npz")]:
        path.unlink()
    for model in models:
        _write(folder, model.stem, model.read_bytes(), *_run(model.read_bytes()), None)
    for case in _cases(wanted):
        if (results := _expected(case)) is not None:
            _write(folder, repr(case), content(case), list(case.feeds), results, case)


def _cases(wanted: str) -> Sequence[Case]:
    if found := re.fullmatch(r"(\d+)(?:\+(\d+))?", wanted):
        step, first = int(found[1]), int(found[2] or 0)
        return DEVICE_CASES[first::step] if step else ()
    return [case for case in DEVICE_CASES if re.search(wanted, repr(case))]


def _run(model: bytes) -> tuple[list[Array], list[Array]]:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    feeds = [*random_inputs(details, 0).values()]
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return feeds, [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _expected(case: Case) -> list[Array] | None:
    """Return what LiteRT says; None for types that a file of numpy's cannot hold."""
    found = expected(case)
    return found if all(array.dtype.kind in "biufc" for array in (*found, *case.feeds)) else None


def _write(folder: Path, name: str, model: bytes, feeds: list[Array], wanted: list[Array], case: Case | None) -> None:
    number = len([*folder.glob("*.tflite")])
    tolerances = [
        compare.DEVICE.get(array.dtype.name, 0.0) if case is None or case.tolerance is None else case.tolerance
        for array in wanted
    ]
    (folder / f"{number:04}.tflite").write_bytes(model)
    arrays = {f"feed{i}": x for i, x in enumerate(feeds)} | {f"wanted{i}": y for i, y in enumerate(wanted)}
    np.savez(folder / f"{number:04}.npz", name=name, tolerances=tolerances, on_device=_is_on_device(case), **arrays)


def _is_on_device(case: Case | None) -> bool:
    """Whether the device is to take every node."""
    return case is None or (case.on_device and case.device is None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [*map(Path, sys.argv[3:])])

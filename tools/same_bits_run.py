"""Runs the models of ``same_bits.py`` with their packs, on a machine with numpy, flatbuffers and litecl, and prints a
line of JSON a model: the digests of its outputs by number of threads, and what the report promises.

Usage: tools/same_bits_run.py FOLDER TARGET
"""

import hashlib
import json
import sys
from pathlib import Path

for _name in ("pyopencl", "ziglang", "platformdirs", "rich", "jinja2", "threadpoolctl"):
    sys.modules[_name] = None  # type: ignore[assignment]  # importing it raises ImportError

import numpy as np  # noqa: E402

from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import LiteclError  # noqa: E402


def main(folder: Path, target: str) -> None:
    """Run all models with a pack for the target."""
    for pack in sorted(folder.glob(f"*.{target}.pack")):
        name = pack.name.partition(".")[0]
        row: dict[str, object] = {"model": name}
        for threads in (1, 2):
            try:
                row[f"{threads}"], row["report"] = _digests(folder / f"{name}.tflite", pack, threads)
            except LiteclError as error:
                row["failed"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row), flush=True)


def _digests(model: Path, pack: Path, threads: int) -> tuple[list[str], str]:
    delegate = CLDelegate(programs=pack, strict=True, num_threads=threads, deterministic=True)
    interpreter = Interpreter(model, delegates=[delegate])
    interpreter.allocate_tensors()
    feeds = np.load(model.with_suffix(".npz"), allow_pickle=True)  # strings are objects
    digests = []
    for _ in range(2):  # variables keep the first run's values
        for number, detail in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], feeds[f"feed{number}"])
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            value = np.ascontiguousarray(interpreter.get_tensor(detail["index"]))
            if value.dtype.kind == "f":
                value[np.isnan(value)] = np.nan  # whose sign and payload each processor chooses
            content = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
            digests.append(hashlib.sha256(content).hexdigest()[:16])
    return digests, interpreter.delegation_report().deterministic


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

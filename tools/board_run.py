"""Runs the models that ``board_cases.py`` has written with a pack, on a machine with numpy, flatbuffers and litecl.

Usage: tools/board_run.py FOLDER PACK
"""

import sys
import time
from pathlib import Path

for _name in ("pyopencl", "ziglang", "platformdirs", "rich", "jinja2", "threadpoolctl"):
    sys.modules[_name] = None  # type: ignore[assignment]  # importing it raises ImportError
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np  # noqa: E402

from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import LiteclError  # noqa: E402
from support import compare  # noqa: E402


def main(folder: Path, pack: Path) -> int:
    """Run all, with one thread and with two; tell what fails, and return how many do."""
    files, failed, runs = sorted(folder.glob("*.tflite")), 0, 0
    start_s = time.perf_counter()
    for file in files:
        data = np.load(file.with_suffix(".npz"))
        for threads in (1, 2):
            runs += 1
            try:
                _check(file, data, pack, threads)
            except (AssertionError, LiteclError) as error:
                failed += 1
                print(f"FAILED {data['name']} ({file.name}), {threads} threads: {error}", flush=True)
    seconds = time.perf_counter() - start_s
    print(f"{len(files)} models, {runs} runs, {failed} failed, {seconds:.0f} s")
    return failed


def _check(file: Path, data: "np.lib.npyio.NpzFile", pack: Path, threads: int) -> None:
    delegate = CLDelegate(programs=pack, strict=True, num_threads=threads, dynamic_range="reference")
    interpreter = Interpreter(str(file), delegates=[delegate])
    interpreter.allocate_tensors()
    for i, detail in enumerate(interpreter.get_input_details()):
        interpreter.set_tensor(detail["index"], data[f"feed{i}"])
    interpreter.invoke()
    report = interpreter.delegation_report()
    assert not data["on_device"] or report.claimed == len(report.nodes), (
        f"{report.claimed} of {len(report.nodes)} nodes"
    )
    for i, detail in enumerate(interpreter.get_output_details()):
        got = np.asarray(interpreter.get_tensor(detail["index"]))
        compare.assert_close(got, data[f"wanted{i}"], float(data["tolerances"][i]))


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1]), Path(sys.argv[2])), 100))

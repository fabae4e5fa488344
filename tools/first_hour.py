"""A stopwatch of the first hour: the commands that a new user types, in a fresh environment, home and folder.

``python -m tools.first_hour MODEL`` prints seconds, by the clock and of all processes' CPU time. MODEL is the
user's own model, which takes [1, height, width, channels] in float32. ``--as CPU`` runs litecl as if on another
processor (``tools/as_cpu.sh``). ``--keras`` also installs TensorFlow, and converts a MobileNetV2 of Keras.
"""

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from litecl.interpreter import Interpreter
from litecl.perf.environment import machine
from support.pages import ROOT, steps, text_of

_DATA = "import numpy as np; np.savez('data.npz', {name}=np.random.default_rng(0).random({shape}, np.float32))"
_KERAS = "import keras; keras.applications.MobileNetV2(weights=None).save('model.keras')"


def _steps(model: Path, *, keras: bool) -> Iterator[tuple[str, str]]:
    """Yield what the table says of a step, and its command."""
    program = next(step.text for step in steps(text_of("README.md")) if step.is_code)
    Path("first.py").write_text(program)
    (own,) = Interpreter(model).get_input_details()
    samples = _DATA.format(name=own["name"], shape=(8, *map(int, own["shape"][1:])))
    yield "", f'python -c "{samples}"'
    for command in (
        *("litecl sample .", "litecl run model.tflite --input image.npy", "litecl run model.tflite --input image.npy"),
        *("python first.py", "litecl devices", "litecl inspect model.tflite --delegate"),
        *(f"litecl run {model}", f"litecl run {model}", f"litecl report {model} -o report.html"),
        f"litecl convert {model} -o int8.tflite --quantize int8 --calibrate data.npz",
        *("litecl run int8.tflite", "litecl run int8.tflite", "litecl report int8.tflite -o int8.html"),
    ):
        yield command.replace(str(model), "own.tflite").replace("first.py", "README's program"), command
    if keras:
        extra = f"pip install -q {shlex.quote(f'{ROOT}[convert]')}"
        yield "pip install 'litecl[convert]'", extra
        yield "", f'python -c "{_KERAS}"'
        command = "litecl convert model.keras -o keras.tflite"
        yield command, command


def _timed(command: str, env: dict[str, str], prefix: Sequence[str]) -> tuple[float, float]:
    """Run a command, and return seconds by the clock and of CPU time. Raises CalledProcessError with its output."""
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*prefix, *shlex.split(command)], env=env, check=True, stdout=subprocess.DEVNULL)
    took_s, after = time.perf_counter() - start_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Take the time of each step, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("--as", dest="processor", metavar="CPU", help="such as x86-64-v3")
    parser.add_argument("--within", type=Path, metavar="VENV", help="an environment with litecl, in place of a new one")
    parser.add_argument("--keras", action="store_true", help="also convert a model of Keras")
    args = parser.parse_args()
    model = args.model.resolve()
    here = machine()
    print(f"{here['processor']}, {here['cores']} cores{f', as {args.processor}' if args.processor else ''}")
    print(f"own.tflite: {model.name}\n\n| command | s | CPU s |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="litecl-first-hour-") as folder:
        venv = args.within.absolute() if args.within else Path(folder, "venv")
        os.chdir(folder)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_", "VIRTUAL"))}
        env |= {"HOME": f"{folder}/home", "PATH": f"{venv}/bin:{env['PATH']}"}
        Path("home").mkdir()
        as_other = [str(ROOT / "tools/as_cpu.sh"), args.processor] if args.processor else []
        if not args.within:
            _tell("python -m venv venv", *_timed(f"{sys.executable} -m venv venv", env, ()))
            _tell("pip install .", *_timed(f"pip install -q {ROOT}", env, ()))
        for told, command in _steps(model, keras=args.keras):
            took = _timed(command, env, as_other if command.startswith(("litecl", "python first")) else ())
            if told:
                _tell(told, *took)


def _tell(told: str, took_s: float, cpu_s: float) -> None:
    print(f"| `{told}` | {took_s:.1f} | {cpu_s:.1f} |", flush=True)


if __name__ == "__main__":
    main()

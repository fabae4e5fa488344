"""The assembly of kernels as the back end for the processor compiles them."""

import subprocess
import tempfile
from pathlib import Path

from litecl.delegate.native.clang import Compiler, Unit


def assembly(compiler: Compiler, unit: Unit) -> str:
    """Return a source's assembly as text."""
    with tempfile.TemporaryDirectory() as folder:
        task = compiler._task({0: unit}, Path(folder))
        command = ["-S" if word == "-emit-obj" else word for word in task.command]
        subprocess.run(command, check=True)
        return task.products[0].path.with_suffix(".s").read_text()

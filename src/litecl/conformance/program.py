"""Runs a command as a runtime: it reads a model and inputs from files, and writes outputs to another.

``COMMAND MODEL.tflite INPUTS.npz OUTPUTS.npz``: the arrays of ``INPUTS.npz`` have the names of the model's inputs (with
"#" and their position for repeated names), in the model's order. The program writes ``OUTPUTS.npz`` with the outputs in
the model's order. It exits with 0, or with another code and a reason on stderr if it can't run the model.
"""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from litecl.bisection.runners import Run
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.feeding import told_apart
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.interpreter.tensor_files import opened

_MODEL, _INPUTS, _OUTPUTS = "model.tflite", "inputs.npz", "outputs.npz"


class Died(LiteclError):
    """Raised when a runtime's process died or did not answer in time."""


@dataclass(frozen=True)
class Program:
    """A command. line: three paths are appended to it. timeout_s: the longest that a run may take."""

    line: str
    timeout_s: float = 60.0

    @cached_property
    def words(self) -> list[str]:
        """The program and its arguments. Raises LiteclError if there is no such program."""
        try:
            words = shlex.split(self.line)
        except ValueError as error:  # a quote without its end
            raise LiteclError(f"{self.line!r}: {error}") from error
        if not words or shutil.which(words[0]) is None:
            raise LiteclError(f"{self.line!r}: there is no such program, or it cannot be executed")
        return words

    def prepare(self, content: bytes) -> Run:
        """Return a function that runs a model in a process. The function raises Died and LiteclError."""
        return partial(self._run, content)

    def _run(self, content: bytes, values: Sequence[Array]) -> list[Array]:
        main = read(content).subgraphs[0]
        names = told_apart([main.tensors[t].name for t in main.inputs])
        with tempfile.TemporaryDirectory(prefix="litecl-program-") as folder:
            paths = [Path(folder) / name for name in (_MODEL, _INPUTS, _OUTPUTS)]
            paths[0].write_bytes(content)
            named: dict[str, Any] = dict(zip(names, values, strict=True))
            np.savez(paths[1], **named)
            self._call(paths)
            if not paths[2].exists():
                raise LiteclError(f"expected that {self.words[0]} writes {_OUTPUTS}, got no such file")
            with opened(paths[2], "a .npz file") as arrays:
                return [arrays[name] for name in arrays.files]

    def _call(self, paths: Sequence[Path]) -> None:
        command = [*self.words, *map(str, paths)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise Died(f"no result within {self.timeout_s:g} s") from error
        except OSError as error:
            raise LiteclError(f"{self.words[0]}: {error}") from error
        if done.returncode < 0:
            raise Died(f"killed by signal {-done.returncode}")
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise LiteclError(lines[-1] if lines else f"ended with exit code {done.returncode}")

"""tools.objects: a package of one model's objects for this processor, as a process finds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from litecl.delegate.native import ahead, compiler
from litecl.interpreter.file.writer import write_file
from support import small_models
from tools import objects

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
COMPILED = Path(objects.__file__).with_name("compiled.py")


def test_a_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with one thread nor with two."""
    model, folder = tmp_path / "chain.tflite", tmp_path / "made"
    write_file(small_models.chain(), model)
    monkeypatch.setattr(sys, "argv", ["objects", str(folder), str(model), "--only-models", "--for", "host"])
    objects.main()
    (package,) = (path for path in (folder / ahead.PACKAGE).iterdir() if path.is_dir())
    assert {path.suffix for path in package.iterdir()} == {".bin", ".json"}
    assert not [*package.glob("library-*")]
    for threads in ("1", "2"):
        command = [sys.executable, COMPILED, str(model), threads]
        for path, is_here in ((folder, True), (tmp_path, False)):
            environment = {**os.environ, "PYTHONPATH": str(path)}
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            assert (ran.stdout == "0\n") == is_here, ran.stdout

"""Runs the README's examples: the first on a small model, the second where TensorFlow is installed."""

import os
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import TensorType

README = Path(__file__).resolve().parents[2] / "README.md"


def main() -> None:
    """Run what the README prints, and check that the device took the whole model."""
    run, convert = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("model.tflite").write_bytes(dense())
        for example in (run, convert) if find_spec("tensorflow") else (run,):
            scope: dict[str, Any] = {}
            exec(compile(example, str(README), "exec"), scope)
            report = scope["interpreter"].delegation_report()
            assert all(row.claimed for row in report.nodes), str(report)
        os.chdir("/")


def dense() -> bytes:
    """Return a file of one FULLY_CONNECTED."""
    weights = np.random.default_rng(1).standard_normal((4, 160)).astype(np.float32)
    tensors = (
        TensorSpec(TensorType.FLOAT32, (1, 20, 8), "x"),
        TensorSpec(TensorType.FLOAT32, weights.shape, "weights", weights),
        TensorSpec(TensorType.FLOAT32, (1, 4), "y"),
    )
    node = Node(FULLY_CONNECTED, (0, 1, -1), (2,), FullyConnectedOptions())
    return write(Model((Subgraph(tensors, (0,), (2,), (node,)),)))


if __name__ == "__main__":
    main()

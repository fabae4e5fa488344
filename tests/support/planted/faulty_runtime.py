"""A runtime with tf.lite's API and planted faults: litecl's interpreter, but NEG is wrong, COS differs from run to run,
CUMSUM ends the process, TOPK_V2 never ends, and SIN is refused.
"""

import os
import signal
import time
from typing import Any

import numpy as np

from litecl import interpreter
from litecl.interpreter.file.reader import read

__version__ = "1.5"
_RUNS = [0]


class Interpreter(interpreter.Interpreter):
    """Runs a model as litecl does, but for the faults."""

    def __init__(self, model_content: bytes) -> None:
        super().__init__(model_content=model_content)
        self._ops = [node.op.name for graph in read(model_content).subgraphs for node in graph.nodes]
        if "SIN" in self._ops:
            raise ValueError("Didn't find op for builtin opcode 'SIN' version '1'.")

    def invoke(self) -> None:
        """Run the model, or end in one of the ways."""
        if "CUMSUM" in self._ops:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "TOPK_V2" in self._ops:
            time.sleep(1000)
        super().invoke()

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a tensor, wrong after some operators."""
        value = super().get_tensor(tensor_index, subgraph_index)
        if "COS" in self._ops:
            _RUNS[0] += 1
            return value + np.float32(_RUNS[0])
        return value * np.float32(1.01) if "NEG" in self._ops else value

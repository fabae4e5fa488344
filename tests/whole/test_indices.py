"""Indices that are out of range: an error on the CPU, the nearest element on the device."""

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model


@pytest.mark.parametrize("op", [GATHER, GATHER_ND, EMBEDDING_LOOKUP], ids=lambda op: op.name)
def test_indices_out_of_range_are_the_nearest_on_the_device_and_errors_on_the_cpu(op: Op) -> None:
    """The rule of docs/operators.md."""
    table, wanted = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([-1, 4, 2, -(2**31), 2**31 - 1], np.int32)
    g = Graph()
    x, places = g.input((4, 3)), g.input((5, 1) if op is GATHER_ND else (5,), TensorType.INT32)
    operands = [places, x] if op is EMBEDDING_LOOKUP else [x, places]
    content = model(g.build(g.op(op, operands, GatherOptions() if op is GATHER else NoOptions())))
    for delegates in ([], [CLDelegate(num_threads=1)]):
        interpreter = Interpreter(content, delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(x, table)
        interpreter.set_tensor(places, wanted.reshape(5, 1) if op is GATHER_ND else wanted)
        if not delegates:
            with pytest.raises(ModelError, match=op.name):
                interpreter.invoke()
            continue
        interpreter.invoke()
        (output,) = interpreter.get_output_details()
        np.testing.assert_array_equal(interpreter.get_tensor(output["index"]), table[np.clip(wanted, 0, 3)])

"""A resize to a side that is longer than any image's runs on the CPU: its tables would take gigabytes."""

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions
from support.build import Graph, model


@pytest.mark.parametrize(("columns", "claimed"), [(1 << 12, True), ((1 << 20) + 1, False)])
def test_the_longest_side(columns: int, claimed: bool) -> None:
    g = Graph()
    y = g.op(RESIZE_BILINEAR, [g.input((1, 1, 2, 1)), g.const(np.array([1, columns], np.int32))], _OPTIONS)
    interpreter = Interpreter(write(model(g.build(y))), delegates=[CLDelegate("native", num_threads=1)])
    interpreter.allocate_tensors()
    (row,) = interpreter.delegation_report().nodes
    assert (row.claimed, row.reason) == (claimed, "" if claimed else "more than 1048576 rows or columns")
    interpreter.set_tensor(
        interpreter.get_input_details()[0]["index"], np.array([0, 8], np.float32).reshape(1, 1, 2, 1)
    )
    interpreter.invoke()
    (found,) = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0, :, 1]
    np.testing.assert_allclose(found, [16 / columns], rtol=1e-5)


_OPTIONS = ResizeBilinearOptions()

"""Recurrent operators on quantized activations over several invocations, against LiteRT's reference kernels."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.cases import Case, integer_lstm, rng
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write


@pytest.mark.parametrize("case", integer_lstm.CASES, ids=repr)
def test_states_carry_over(case: Case) -> None:
    content = write(case.model())
    ours = Interpreter(model_content=content)
    expected = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    random = rng(55)
    for interpreter in (ours, expected):
        interpreter.allocate_tensors()
    for _ in range(4):
        (feed,) = case.feeds
        limits = np.iinfo(feed.dtype)
        x = random.integers(limits.min, limits.max + 1, feed.shape).astype(feed.dtype)
        results = []
        for interpreter in (ours, expected):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*results)

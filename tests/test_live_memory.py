"""Memory of the interpreter follows the tensors that are alive, also where they belong to many subgraphs."""

import tracemalloc

import numpy as np

from build import Graph, model
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.unary import ABS

SIZE = 250_000  # elements of a tensor, a million bytes


def test_ten_sibling_subgraphs_cost_the_largest_and_not_the_sum() -> None:
    main = Graph()
    x = main.input((SIZE,))
    for callee in range(1, 11):
        (x,) = main.node(CALL, [x], [main.tensors[x]], CallOptions(callee))
    siblings = []
    for index in range(10):
        g = Graph(f"sibling{index}")
        given = g.input((SIZE,))
        grown = g.op(ADD, [g.op(ABS, [given], NoOptions()), given], AddOptions())
        siblings.append(g.build(g.op(ABS, [grown], NoOptions())))
    interpreter = Interpreter(model(main.build(x), *siblings))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones(SIZE, np.float32))
    tracemalloc.start()
    interpreter.invoke()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 5 * 4 * SIZE  # of the 30 tensors that are made, no more than these are ever alive together

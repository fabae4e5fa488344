"""Threads of numpy's BLAS: the requested number while a model runs, afterwards the number before."""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import ThreadpoolController, threadpool_limits

from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops import every_op
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.options import CustomOptions, unknown_op
from litecl.interpreter.run import threads
from litecl.interpreter.run.threads import limited
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

BLAS = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]

pytestmark = pytest.mark.skipif(not BLAS, reason="numpy has no BLAS that threadpoolctl knows")


def _model(rows: int) -> Model:
    """A product of [rows, 64] and [64, 512], and a custom operator after it."""
    graph = Graph()
    product = graph.op(
        FULLY_CONNECTED, [graph.input((rows, 64)), graph.const(np.ones((512, 64), np.float32))], FullyConnectedOptions()
    )
    custom = unknown_op("LOOK", custom=True)
    (output,) = graph.node(custom, [product], [TensorSpec(TensorType.INT32, (1,))], CustomOptions())
    return model(graph.build(output))


def _look(options: bytes, inputs: Sequence[Array | None]) -> list[Array]:
    return [np.array([BLAS[0].get_num_threads()], np.int32)]


def _seen(rows: int, num_threads: int | None) -> int:
    interpreter = Interpreter(_model(rows), num_threads=num_threads, custom_ops={"LOOK": _look})
    interpreter.allocate_tensors()
    interpreter.invoke()
    return int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


@pytest.fixture(autouse=True)
def _three() -> object:
    with threadpool_limits(3, "blas"):
        yield
        assert [library.get_num_threads() for library in BLAS] == [3] * len(BLAS)


def test_operators_that_multiply_matrices_are_ones_that_exist() -> None:
    assert {op.name for op in every_op()} >= threads._PRODUCTS


def test_large_products_get_what_is_asked_for() -> None:
    assert [_seen(1024, count) for count in (None, 1, 2, 9)] == [3, 1, 2, 3]


def test_small_products_get_one() -> None:
    assert [_seen(4, count) for count in (None, 2)] == [1, 1]


def test_what_a_delegate_runs_counts_no_more() -> None:
    """Subgraphs that only regions run stay in the model."""
    product = _model(4).subgraphs[0]
    cond = Subgraph((), (), (), ())
    body_runs = Node(CALL, (), (), CallOptions(subgraph=1))
    for nodes, limits_apply in (((), False), ((body_runs,), True)):
        rewritten = Model((replace(cond, nodes=nodes), product))
        specs = [graph.tensors for graph in rewritten.subgraphs]
        assert isinstance(limited(rewritten, specs, None), nullcontext) != limits_apply


def test_the_smallest_number_counts_while_several_run() -> None:
    """In whatever order they start and end; then the number before is restored."""
    failures: list[object] = []

    def work(count: int) -> None:
        interpreter = Interpreter(_model(1024), num_threads=count, custom_ops={"LOOK": _look})
        interpreter.allocate_tensors()
        for _ in range(40):
            interpreter.invoke()
            seen = int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
            if not 1 <= seen <= count:
                failures.append((seen, count))

    workers = [threading.Thread(target=work, args=(count,)) for count in (1, 1, 2, 2, 2, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_threads_that_begin_together_have_one_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two accounts of who wishes what would leave the setting of the one to the other."""
    real, found = threadpoolctl.ThreadpoolController, list[object]()

    def slow() -> ThreadpoolController:
        time.sleep(0.05)
        return real()

    monkeypatch.setattr(threads, "_known", {})
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", slow)
    beginning = [threading.Thread(target=lambda: found.append(threads._blas())) for _ in range(3)]
    for thread in beginning:
        thread.start()
    for thread in beginning:
        thread.join()
    assert len({*map(id, found)}) == 1


def test_a_child_forked_while_a_model_runs_has_the_setting_of_before() -> None:
    def fork(options: bytes, inputs: Sequence[Array | None]) -> list[Array]:
        child = os.fork()
        if not child:
            os._exit(BLAS[0].get_num_threads() * 16 + _seen(4, None))
        return [np.array([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])], np.int32)]

    interpreter = Interpreter(_model(4), custom_ops={"LOOK": fork})
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) == [3 * 16 + 1]


def test_errors_leave_nothing_behind() -> None:
    def fails(options: bytes, inputs: Sequence[Array | None]) -> list[Array]:
        raise KeyError("mine")

    interpreter = Interpreter(_model(4), custom_ops={"LOOK": fails})
    interpreter.allocate_tensors()
    with pytest.raises(KeyError):
        interpreter.invoke()

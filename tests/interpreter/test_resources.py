"""Variables and hash tables, which outlive an invocation, against ai_edge_litert."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.hashtable import (
    HASHTABLE,
    HASHTABLE_FIND,
    HASHTABLE_IMPORT,
    HASHTABLE_SIZE,
    HashtableOptions,
)
from litecl.interpreter.ops.pack import PACK, PackOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import outputs_of
from support.build import Graph, model

NONE = NoOptions()
RESOURCE = TensorSpec(TensorType.RESOURCE, (1,))
KEYS = np.array([7, -3, 2**40, 12, 5], np.int64)
WORDS = np.array([b"seven", b"", b"large", b"a dozen", b"five"], np.object_)


def _table(key: TensorType, value: TensorType) -> HashtableOptions:
    return HashtableOptions(3, key, value)


def _lookup(options: HashtableOptions, keys: Array, values: Array, default: Array, count: int) -> Model:
    main, init = Graph("main"), Graph("init")
    query = main.input((count,), options.key_dtype)
    main.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (table,) = main.node(HASHTABLE, (), (RESOURCE,), options)
    given = main.const(default)
    found = main.node(HASHTABLE_FIND, (table, query, given), (TensorSpec(options.value_dtype, (count,)),), NONE)
    size = main.node(HASHTABLE_SIZE, (table,), (TensorSpec(TensorType.INT64, (1,)),), NONE)
    (filled,) = init.node(HASHTABLE, (), (RESOURCE,), options)
    init.node(HASHTABLE_IMPORT, (filled, init.const(keys), init.const(values)), (), NONE)
    return model(main.build(*found, *size), init.build())


@pytest.mark.parametrize(
    ("options", "keys", "values", "default", "query"),
    [
        (
            _table(TensorType.INT64, TensorType.STRING),
            KEYS,
            WORDS,
            np.array([b"?"], np.object_),
            np.array([5, 6, 2**40, -3, 7, -9], np.int64),
        ),
        (
            _table(TensorType.STRING, TensorType.INT64),
            WORDS,
            KEYS,
            np.array([-1], np.int64),
            np.array([b"five", b"zzz", b"", b"large"], np.object_),
        ),
    ],
    ids=["int64 to string", "string to int64"],
)
def test_hash_table(options: HashtableOptions, keys: Array, values: Array, default: Array, query: Array) -> None:
    content = write(_lookup(options, keys, values, default, query.size))
    ours, theirs = Interpreter(model_content=content), LiteRT(model_content=content)
    results = []
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
        for _ in range(2):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], query)
            interpreter.invoke()
        results.append(outputs_of(interpreter))
    (found, size), (expected, expected_size) = results
    assert found.tolist() == expected.tolist()
    assert size.tolist() == expected_size.tolist() == [keys.size]


def _accumulator(initialised: bool) -> Model:
    main, init = Graph("main"), Graph("init")
    x = main.input((3,))
    if initialised:
        main.node(CALL_ONCE, (), (), CallOnceOptions(1))
    (handle,) = main.node(VAR_HANDLE, (), (RESOURCE,), VarHandleOptions("", "total"))
    (before,) = main.node(READ_VARIABLE, (handle,), (TensorSpec(TensorType.FLOAT32, (3,)),), NONE)
    (after,) = main.node(ADD, (before, x), (TensorSpec(TensorType.FLOAT32, (3,)),), AddOptions())
    main.node(ASSIGN_VARIABLE, (handle, after), (), NONE)
    (filled,) = init.node(VAR_HANDLE, (), (RESOURCE,), VarHandleOptions("", "total"))
    init.node(ASSIGN_VARIABLE, (filled, init.const(np.float32([1, 2, 3]))), (), NONE)
    return model(main.build(after), init.build())


def test_variable() -> None:
    content = write(_accumulator(initialised=True))
    ours, theirs = Interpreter(model_content=content), LiteRT(model_content=content)
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    for feed in np.float32([[1, 1, 1], [0.5, 0, -4], [2, 3, 4]]):
        results = []
        for interpreter in (ours, theirs):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], feed)
            interpreter.invoke()
            results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*results)


def test_a_variable_that_was_never_assigned_is_named() -> None:
    interpreter = Interpreter(_accumulator(initialised=False))
    interpreter.allocate_tensors()
    with pytest.raises(ModelError, match="variable '/total' was never assigned"):
        interpreter.invoke()


def _two(g: Graph) -> int:
    handles = [g.node(VAR_HANDLE, (), (RESOURCE,), VarHandleOptions("", name))[0] for name in "ab"]
    (packed,) = g.node(PACK, handles, (TensorSpec(TensorType.RESOURCE, (2,)),), PackOptions(2, 0))
    return packed


def _none(g: Graph) -> int:
    begin, size = g.const(np.int32([0])), g.const(np.int32([0]))
    (cut,) = g.node(SLICE, (_two(g), begin, size), (TensorSpec(TensorType.RESOURCE, (0,)),), NONE)
    return cut


def _fed(g: Graph) -> int:
    return g.input((2,), TensorType.RESOURCE)


def _reads(g: Graph, handle: int) -> None:
    g.node(READ_VARIABLE, (handle,), (TensorSpec(TensorType.FLOAT32, (3,)),), NONE)


def _assigns(g: Graph, handle: int) -> None:
    g.node(ASSIGN_VARIABLE, (handle, g.const(np.float32([1, 2, 3]))), (), NONE)


def _finds(g: Graph, handle: int) -> None:
    keys, default = g.const(KEYS), g.const(np.array([b"?"], np.object_))
    g.node(HASHTABLE_FIND, (handle, keys, default), (TensorSpec(TensorType.STRING, (5,)),), NONE)


def _imports(g: Graph, handle: int) -> None:
    g.node(HASHTABLE_IMPORT, (handle, g.const(KEYS), g.const(WORDS)), (), NONE)


def _sizes(g: Graph, handle: int) -> None:
    g.node(HASHTABLE_SIZE, (handle,), (TensorSpec(TensorType.INT64, (1,)),), NONE)


@pytest.mark.parametrize("use", [_reads, _assigns, _finds, _imports, _sizes])
@pytest.mark.parametrize("made, count", [(_two, 2), (_none, 0), (_fed, 2)])
def test_handles_that_are_not_one_are_refused_by_the_node(use: Any, made: Any, count: int) -> None:
    g = Graph("main")
    x = g.input((3,))
    use(g, made(g))
    with pytest.raises(ShapeError, match=rf"expected one handle as '.+', got {count} \(shape \[{count}\]\)") as raised:
        Interpreter(model(g.build(x))).allocate_tensors()
    (note,) = raised.value.__notes__
    assert note.startswith(f"while preparing {raised.value.operator} (subgraph 0, node ")


def test_handles_of_a_shape_that_only_the_run_tells_are_refused() -> None:
    g = Graph("main")
    size = g.input((1,), TensorType.INT32)
    (cut,) = g.node(SLICE, (_two(g), g.const(np.int32([0])), size), (TensorSpec(TensorType.RESOURCE, (-1,)),), NONE)
    (value,) = g.node(READ_VARIABLE, (cut,), (TensorSpec(TensorType.FLOAT32, (3,)),), NONE)
    interpreter = Interpreter(model(g.build(value)))
    interpreter.allocate_tensors()
    interpreter.set_tensor(size, np.int32([2]))
    with pytest.raises(ShapeError, match=r"READ_VARIABLE: expected one handle, got 2 \(shape \[2\]\)"):
        interpreter.invoke()

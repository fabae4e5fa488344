"""TensorFlow 1's control flow and variables, from frozen graphs and SavedModels, against a session."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from support.conversion import assert_computes, invoke, litert, sizes  # noqa: E402
from support.tf_v1 import (  # noqa: E402
    GRAPHS,
    counter,
    feeds,
    loop,
    old_control_flow,
    read_in_loop,
    written_in_branch,
)
from support.tf_v1_orders import ORDERS, UNDECIDED  # noqa: E402

v1 = tf.compat.v1


@pytest.mark.parametrize(("build", "shape"), GRAPHS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_frozen_graph(build: Callable[[Any], Any], shape: tuple[int | None, ...], tmp_path: Path) -> None:
    with old_control_flow() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, shape, "x")
        y = tf.identity(build(x), "y")
        values = feeds(shape)
        expected = [session.run(y, {x: value}) for value in values]
        definition = graph.as_graph_def()
    assert {"Switch", "Merge"} <= {node.op for node in definition.node}
    path = tmp_path / "graph.pb"
    path.write_bytes(definition.SerializeToString())
    content = Converter.from_frozen_graph(path, ["x"], ["y"]).convert()
    assert_computes(content, [[value] for value in values], [[wanted] for wanted in expected])


def test_arrays_that_a_loop_swaps_are_refused(tmp_path: Path) -> None:
    """TensorFlow swaps their flow values alone: each name stands for the array that it stood for before the loop."""
    with old_control_flow() as graph:
        x = v1.placeholder(tf.float32, (3, 4), "x")
        arrays = [tf.TensorArray(tf.float32, 3, element_shape=(4,)) for _ in range(2)]
        body = lambda i, a, b: (i + 1, b, a.write(i, x[i]))  # noqa: E731
        _, a, b = v1.while_loop(lambda i, a, b: i < 3, body, [0, *arrays])
        tf.concat([a.stack(), b.stack()], 0, name="y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(ConversionError, match="a loop or branch swaps its array for another;"):
        Converter.from_frozen_graph(path, ["x"], ["y"]).convert()


def test_a_branch_without_shapes(tmp_path: Path) -> None:
    """TensorFlow 2's branch in a frozen graph, which keeps no shapes of what it computes."""
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, (None, 4), "x")
        is_taken = v1.placeholder_with_default(True, ())
        y = v1.cond(is_taken, lambda: x * 2.0, lambda: x - 1.0)
        y = tf.matmul(y, tf.reshape(tf.range(8.0), (4, 2)), name="y")
        (value, *_) = feeds((None, 4))
        expected = session.run(y, {x: value})
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    content = Converter.from_frozen_graph(path, ["x"], ["y"]).convert()
    assert_computes(content, [[value]], [[expected]])


def test_tables_of_a_saved_model(tmp_path: Path) -> None:
    path, words = tmp_path / "model", [b"one", b"two", b"four"]
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, (4,), "x")
        filled = tf.lookup.KeyValueTensorInitializer(tf.constant(words), tf.constant([1, 2, 4], tf.int64))
        y = tf.lookup.StaticHashTable(filled, -1).lookup(x)
        session.run(v1.tables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y}, legacy_init_op=v1.tables_initializer())
    runner = Interpreter(Converter.from_saved_model(path).convert()).get_signature_runner()
    assert runner(x=np.array([b"four", b"three", b"one", b"two"], object))["y"].tolist() == [4, -1, 1, 2]


_TABLES: dict[str, tuple[Any, Any, Any, Any]] = {
    "strings": (["one", "two"], np.int64([1, 2]), -1, np.array([b"two", b"three", b"one"], object)),
    "to strings": (np.int64([5, 3]), ["five", "three"], "?", np.int64([3, 4, 5])),
    "numbers": (np.int64([5, 3]), np.float32([0.5, 0.25]), -1.0, np.int64([3, 4, 5])),
}


def _looked_up(x: Any, keys: Any, values: Any, default: Any) -> Any:
    """Return what a table has that the graph itself fills, before it looks anything up."""
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)
    with tf.control_dependencies([v1.tables_initializer()]):
        return table.lookup(tf.identity(x))


@pytest.mark.parametrize("is_filled", [False, True], ids=["graph alone", "loader too"])
@pytest.mark.parametrize("name", _TABLES)
def test_tables_that_the_graph_fills(name: str, is_filled: bool, tmp_path: Path) -> None:
    *content, asked = _TABLES[name]
    path = tmp_path / "model"
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.string if asked.dtype == object else tf.int64, (3,), "x")
        y = tf.identity(_looked_up(x, *content), "y")
        expected = session.run(y, {x: asked})
        options = {"legacy_init_op": v1.tables_initializer()} if is_filled else {}
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y}, **options)
    frozen = tmp_path / "graph.pb"
    frozen.write_bytes(graph.as_graph_def().SerializeToString())
    for converter in (Converter.from_saved_model(path), Converter.from_frozen_graph(frozen, ["x"], ["y"])):
        for runtime in (litert(converted := converter.convert()), Interpreter(model_content=converted)):
            for _ in range(2):
                assert invoke(runtime, [asked])[0].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "others", [("b", "three"), ("b", "two", "c"), ("a", "two")], ids=["other value", "more", "repeated"]
)
def test_tables_of_two_contents_are_refused(others: Sequence[str], tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.string, (3,), "x")
        handle = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.string, shared_name="table")
        fills = []
        for words in (("a", "one", "b", "two"), ("a", "one", *others)):
            keys, values = tf.constant(words[::2]), tf.constant((*words, "")[1::2][: len(words[::2])])
            fills.append(tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=keys, values=values))
        with tf.control_dependencies(fills):
            found = tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=tf.identity(x), default_value="?")
        tf.identity(found, "y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(ConversionError, match="LookupTableImportV2"):
        Converter.from_frozen_graph(path, ["x"], ["y"]).convert()


def test_loop_carries_nothing_of_frames(tmp_path: Path) -> None:
    with old_control_flow() as graph:
        tf.identity(loop(v1.placeholder(tf.float32, (3, 4), "x")), "y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    assert sizes(Converter.from_frozen_graph(path, ["x"], ["y"]).convert_to_model()) == [1, 1, 4]


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("build", [read_in_loop, counter, written_in_branch])
def test_saved_model(build: Callable[[Any, bool], Any], use_resource: bool, tmp_path: Path) -> None:
    path = tmp_path / "model"
    with old_control_flow(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (3, 4), "x")
        y = tf.identity(build(x, use_resource), "y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
        values = feeds((3, 4))
        expected = [session.run(y, {x: value}) for value in values]
    content = Converter.from_saved_model(path).convert()
    assert_computes(content, [[value] for value in values], [[wanted] for wanted in expected])


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
def test_order_of_reads_and_writes(use_resource: bool, tmp_path: Path) -> None:
    """Every order has a variable and a result of its own in one model."""
    path = tmp_path / "model"
    with old_control_flow(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (4, 3), "x")
        results = {name: build(_variable(name, use_resource), x) for name, build in ORDERS.items()}
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, results)
        values = feeds((4, 3))
        expected = [session.run(results, {x: value}) for value in values]
    content = Converter.from_saved_model(path).convert()
    for runtime in (litert(content), Interpreter(content)):
        runner = runtime.get_signature_runner()
        for value, wanted in zip(values, expected, strict=True):
            got = runner(x=value)
            for name in ORDERS:
                np.testing.assert_allclose(got[name], wanted[name], 1e-4, 1e-4, err_msg=name)


def test_a_graph_that_is_not_frozen_is_refused(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf.identity(v1.placeholder(tf.float32, (4, 3), "x") * _variable("w", use_resource=False), "y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(ConversionError, match="variable 'w' has no value"):
        Converter.from_frozen_graph(path, ["x"], ["y"]).convert()


def test_a_model_that_tensorflow_cannot_load_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (4, 3), "x")
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": tf.math.xlogy(x, 2.0)})
    file = path / "saved_model.pb"
    file.write_bytes(file.read_bytes().replace(b"Xlogy", b"Ylogx"))
    with pytest.raises(ConversionError, match=r"TensorFlow itself cannot load.*Ylogx"):
        Converter.from_saved_model(path).convert()


@pytest.mark.parametrize("op", UNDECIDED)
def test_what_may_share_the_memory_of_a_variable_is_refused(op: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    with old_control_flow(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (4, 3), "x")
        variable = _variable("w", use_resource=False)
        shared = UNDECIDED[op](variable)
        with tf.control_dependencies([shared]):
            written = variable.assign_add(x)
        with tf.control_dependencies([written]):
            results = {"y": shared * 2.0} if op != "Transpose" else {"y": shared, "z": variable * x}
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, results)
    with pytest.raises(ConversionError, match=f"{op} .* reads the variable 'w'.*AssignAdd.*use_resource"):
        Converter.from_saved_model(path).convert()


def _variable(name: str, use_resource: bool) -> Any:
    value = np.random.default_rng(len(name)).normal(size=(4, 3)).astype(np.float32)
    return v1.get_variable(name, initializer=value, use_resource=use_resource)


def test_lists_in_bodies_without_shapes(tmp_path: Path) -> None:
    """A SavedModel made in a session keeps no shapes of what the bodies of its loops compute."""
    raw, path = tf.raw_ops, tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (3, 4), "x")
        made = raw.TensorListReserve(element_shape=-1, num_elements=5, element_dtype=tf.float32)
        loop = tf.while_loop(
            lambda i, _: i < 5,
            lambda i, made: (i + 1, raw.TensorListSetItem(input_handle=made, index=i, item=x * tf.cast(i, tf.float32))),
            [0, made],
        )
        y = raw.TensorListStack(input_handle=loop[1], element_shape=-1, element_dtype=tf.float32)
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
        (value, *_) = feeds((3, 4))
        expected = session.run(y, {x: value})
    assert_computes(Converter.from_saved_model(path).convert(), [[value]], [[expected]])

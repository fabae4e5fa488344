"""Operators with effects: kept, or refused by name, but never folded or dropped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from support.conversion import assert_all_close, assert_computes, converter_of, invoke, litert, runtimes  # noqa: E402

v1 = tf.compat.v1
_SPEC = tf.TensorSpec((2, 4), tf.float32, name="x")
_INDICES = np.int32([0, 2])


class Cache(tf.Module):
    """A variable [4, 4] of which the model writes a part, each time it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = tf.Variable(np.zeros((4, 4), np.float32))

    def slice(self, x: Any) -> Any:
        self.rows[1:3].assign(x)
        return self.rows * 1.0

    def column(self, x: Any) -> Any:
        self.rows[:, tf.cast(x[0, 0], tf.int32)].assign(tf.concat([x[0, :2], x[1, :2]], 0))
        return self.rows * 1.0

    def row(self, x: Any) -> Any:
        self.rows[tf.cast(x[0, 0], tf.int32) - 4].assign(x[1])
        self.rows[2, 1:-1].assign(5.0)
        return self.rows * 1.0

    def steps(self, x: Any) -> Any:
        self.rows[::2].assign(x)
        return self.rows * 1.0

    def scatter_add(self, x: Any) -> Any:
        self.rows.scatter_add(tf.IndexedSlices(x, tf.cast(x[:, 0], tf.int32)))
        return self.rows * 1.0

    def scatter_twice(self, x: Any) -> Any:
        places = tf.constant([1, 1]) + 0 * tf.cast(x[:, 0], tf.int32)
        self.rows.scatter_nd_update(places[:, None], x)
        self.rows.scatter_nd_update([[0, 1], [3, 3]], x[0, :2])
        return self.rows * 1.0

    def scatter(self, x: Any) -> Any:
        self.rows.scatter_update(tf.IndexedSlices(x, _INDICES))
        return self.rows * 1.0

    def scatter_nd(self, x: Any) -> Any:
        self.rows.scatter_nd_add(_INDICES[:, None], x)
        return self.rows * 1.0

    def branch(self, x: Any) -> Any:
        def write() -> Any:
            self.rows[1:3].assign(x)
            return x

        return tf.cond(tf.reduce_sum(x) > 0, write, lambda: -x) + self.rows[:2]

    def loop(self, x: Any) -> Any:
        def body(i: Any) -> Any:
            self.rows[i : i + 2].assign(x)
            return (i + 1,)

        tf.while_loop(lambda i: i < 2, body, [0])
        return self.rows * 1.0

    def one_row(self, x: Any) -> Any:
        place = tf.cast(x[0, 0], tf.int32)
        self.rows[place : place + 1, 1:3].assign(x[:1, :2])
        return self.rows * 1.0

    def unread(self, x: Any) -> Any:
        self.rows[1:3].assign(x)
        return x * 2.0


@pytest.mark.parametrize(
    "name",
    [
        "slice",
        "column",
        "row",
        "scatter",
        "scatter_add",
        "scatter_twice",
        "scatter_nd",
        "branch",
        "loop",
        "one_row",
        "unread",
    ],
)
def test_writes_to_a_part_of_a_variable(name: str) -> None:
    module = Cache()
    function = tf.function(getattr(module, name), autograph=False)
    content = Converter.from_concrete_functions([function.get_concrete_function(_SPEC)], module).convert()
    values = [np.random.default_rng(i).uniform(0, 3, (2, 4)).astype(np.float32) for i in range(3)]
    expected = [np.asarray(function(value)) for value in values]
    assert_computes(content, [[value] for value in values], [[wanted] for wanted in expected])


def test_writes_with_steps_are_refused() -> None:
    module = Cache()
    with pytest.raises(ConversionError, match="effect of ResourceStridedSliceAssign"):
        converter_of(module.steps, _SPEC, keep=module).convert()


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: x + tf.numpy_function(lambda a: a + 1, [np.float32([1, 2, 3, 4])], tf.float32), "PyFunc"),
        (lambda x: (tf.numpy_function(lambda a: a + 1, [1.0], tf.float32), x * 2)[1], "PyFunc"),
        (lambda x: x + tf.py_function(lambda a: a + 1, [np.float32([1, 2, 3, 4])], tf.float32), "EagerPyFunc"),
        (lambda x: x + tf.cast(tf.timestamp(), tf.float32), "Timestamp"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_changes_from_run_to_run_is_not_folded(function: Callable[[Any], Any], operator: str) -> None:
    with pytest.raises(ConversionError, match=rf"(computes|effect of) .*{operator} "):
        converter_of(function, _SPEC).convert()


@pytest.mark.parametrize(
    ("function", "low", "high", "mean"),
    [
        (lambda: tf.random.uniform((4000,)), 0, 1, 0.5),
        (lambda: tf.random.normal((4000,)), -6, 6, 0.0),
        (lambda: tf.random.truncated_normal((4000,)), -2, 2, 0.0),
        (lambda: tf.cast(tf.random.categorical(np.log([[0.25, 0.75]]), 4000)[0], tf.float32), 0, 1, 0.75),
        (lambda: tf.cast(tf.random.uniform((4000,), 3, 6, tf.int32), tf.float32), 3, 5, 4.0),
        (lambda: tf.random.shuffle(tf.range(4000.0)), 0, 3999, 1999.5),
    ],
)
def test_random_numbers_are_drawn_anew(function: Callable[[], Any], low: float, high: float, mean: float) -> None:
    content = converter_of(lambda x: x + function(), tf.TensorSpec((4000,))).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        first, second = (invoke(runtime, [np.zeros(4000, np.float32)])[0] for _ in range(2))
        assert (first != second).any()
        assert low <= first.min() <= first.max() <= high
        assert abs(first.mean() - mean) < 0.1


def test_random_numbers_of_a_given_seed_are_those_of_tensorflow() -> None:
    function = tf.function(lambda x: x + tf.random.stateless_uniform((4,), seed=[1, 2]), autograph=False)
    content = Converter.from_concrete_functions([function.get_concrete_function(_SPEC)]).convert()
    x = np.ones((2, 4), np.float32)
    assert_computes(content, [[x]], [[np.asarray(function(x))]])


def test_random_numbers_that_nobody_reads_are_left_out() -> None:
    model = converter_of(lambda x: (tf.random.uniform((4,)), x * 2)[1], _SPEC).convert_to_model()
    assert [node.op.name for node in model.subgraphs[0].nodes] == ["MUL"]


def test_checks_and_messages_are_left_out() -> None:
    def function(x: Any) -> Any:
        tf.print(x)
        tf.debugging.assert_greater(tf.reduce_sum(x), -100.0)
        return tf.debugging.check_numerics(x, "wrong") * 2

    model = converter_of(function, _SPEC).convert_to_model()
    assert [node.op.name for node in model.subgraphs[0].nodes] == ["MUL"]


def _scattered(variable: Any, x: Any) -> Any:
    with tf.control_dependencies([v1.scatter_update(variable, _INDICES, x)]):
        return tf.concat([x, x], 0) + variable.read_value()


def _stepped(optimizer: Any, *arguments: Any) -> Callable[[Any, Any], Any]:
    def build(variable: Any, x: Any) -> Any:
        with tf.control_dependencies([optimizer(*arguments).apply_gradients([(tf.concat([x, x], 0), variable)])]):
            return tf.reduce_sum(x) * tf.identity(variable)

    return build


def _combined(name: str, *, one: bool = False) -> Callable[[Any, Any], Any]:
    """Return a build that writes rows, of which two are one, by a scatter; ``one``: the same number to all."""

    def build(variable: Any, x: Any) -> Any:
        with tf.control_dependencies([v1.assign(variable, tf.concat([x, x + 1], 0))]):
            written = getattr(v1, name)(variable, [2, 0, 2], 1.5 if one else tf.concat([x[:1], x * 2], 0))
        with tf.control_dependencies([written]):
            return variable.read_value() * 1.0

    return build


_COMBINED = [_combined(f"scatter_{kind}") for kind in ("add", "sub", "mul", "div", "max", "min")]
_COMBINED += [_combined("scatter_mul", one=True), _combined("scatter_update", one=True)]


def _greatest(variable: Any, x: Any) -> Any:
    write = tf.raw_ops.ResourceScatterNdMax if "Resource" in type(variable).__name__ else tf.raw_ops.ScatterNdMax
    handle = variable.handle if "Resource" in type(variable).__name__ else variable._ref()
    with tf.control_dependencies([write(ref=handle, indices=[[1, 2], [3, 0]], updates=x[0, :2])]):
        return variable.read_value() * 1.0


_descended, _moved, _regularised = (
    _stepped(optimizer, 0.1)
    for optimizer in (v1.train.GradientDescentOptimizer, v1.train.AdamOptimizer, v1.train.FtrlOptimizer)
)


def _sliced(variable: Any, x: Any) -> Any:
    with tf.control_dependencies([variable[1:3].assign(x)]):
        return x + variable.read_value()[:2]


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("build", [_scattered, _sliced, _descended, _moved, *_COMBINED, _greatest])
def test_writes_of_tensorflow_1(build: Callable[[Any, Any], Any], use_resource: bool, tmp_path: Path) -> None:
    values = [np.random.default_rng(i).normal(size=(2, 4)).astype(np.float32) for i in range(2)]
    expected = _saved(build, use_resource, tmp_path / "model", values)
    content = Converter.from_saved_model(tmp_path / "model").convert()
    assert_computes(content, [[value] for value in values], [[wanted] for wanted in expected])


@pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])
def test_a_step_without_a_formula_is_refused(use_resource: bool, tmp_path: Path) -> None:
    _saved(_regularised, use_resource, tmp_path / "model", [])
    with pytest.raises(ConversionError, match="effect of ResourceApplyFtrl"):
        Converter.from_saved_model(tmp_path / "model").convert()


def _saved(build: Callable[[Any, Any], Any], use_resource: bool, path: Path, values: list[Any]) -> list[Any]:
    """Write a SavedModel; return what it computes of values."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2, 4), "x")
        variable = v1.get_variable("w", initializer=np.zeros((4, 4), np.float32), use_resource=use_resource)
        y = tf.identity(build(variable, x), "y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(path), {"x": x}, {"y": y})
        return [session.run(y, {x: value}) for value in values]


def test_effects_of_a_branch_that_is_never_taken_are_left_out() -> None:
    module = Cache()
    module.training = tf.Variable(False)

    def function(x: Any) -> Any:
        def write() -> Any:
            module.rows[1:3].assign(x)
            return x

        return tf.cond(module.training, write, lambda: x * 2)

    model = converter_of(function, _SPEC, keep=module).convert_to_model()
    assert [node.op.name for node in model.subgraphs[0].nodes] == ["MUL"]


def test_functions_called_for_their_effects_have_them() -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(autograph=False)
        def step(self) -> None:
            self.count.assign_add(1.0)

        @tf.function(input_signature=[_SPEC], autograph=False)
        def run(self, x: Any) -> Any:
            self.step()
            return x + self.count

    module = Counter()
    content = Converter.from_concrete_functions([module.run.get_concrete_function()], module).convert()
    x = np.ones((2, 4), np.float32)
    for runtime in runtimes(content):
        for step in (1, 2, 3):
            assert_all_close(invoke(runtime, [x]), [x + step])

"""The public interface of the interpreter, beside ai_edge_litert's on the same files."""

import weakref
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Node, Signature
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.options import CustomOptions, unknown_op
from support.build import Graph, model, randn

RNG = np.random.default_rng(3)


def two_layers() -> Model:
    """softmax(x * w + b), with an open batch dimension."""
    g = Graph()
    x = g.input((1, 4), signature=(-1, 4))
    scaled = g.op(MUL, [x, g.const(randn(RNG, 4))], MulOptions())
    shifted = g.op(ADD, [scaled, g.const(randn(RNG, 4))], AddOptions())
    y = g.op(SOFTMAX, [shifted], SoftmaxOptions(1.0))
    return model(g.build(y), signatures=[Signature("serving_default", {"x": x}, {"y": y})])


CONTENT = write(two_layers())


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


def pair(content: bytes = CONTENT) -> tuple[Interpreter, LiteRT]:
    """Ours and theirs on the same bytes."""
    return Interpreter(content), LiteRT(model_content=content)


def test_details_are_the_same_dictionaries() -> None:
    ours, theirs = pair()
    for method in ("get_input_details", "get_output_details", "get_tensor_details"):
        for a, b in zip(getattr(ours, method)(), getattr(theirs, method)(), strict=False):
            assert _equal(a, b), (method, a, b)


def test_resize_allocate_invoke() -> None:
    ours, theirs = pair()
    x = randn(RNG, 5, 4)
    results = []
    for interpreter in (ours, theirs):
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, [5, 4], strict=True)
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, x)
        interpreter.invoke()
        output = interpreter.get_output_details()[0]
        assert output["shape"].tolist() == [5, 4]
        results.append(interpreter.get_tensor(output["index"]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_strict_resize_keeps_fixed_dimensions() -> None:
    interpreter = Interpreter(CONTENT)
    with pytest.raises(ShapeError, match=r"signature \[-1, 4\], got \[5, 3\]"):
        interpreter.resize_tensor_input(0, [5, 3], strict=True)
    with pytest.raises(ShapeError, match="not an input"):
        interpreter.resize_tensor_input(1, [5, 3])
    with pytest.raises(ShapeError, match="negative"):
        interpreter.resize_tensor_input(0, [-1, 4])


def test_a_shape_that_does_not_fit_is_refused_at_allocation_and_names_the_node() -> None:
    interpreter = Interpreter(CONTENT)
    interpreter.resize_tensor_input(0, [5, 3])
    with pytest.raises(ShapeError) as caught:
        interpreter.allocate_tensors()
    assert "MUL (subgraph 0, node 0)" in caught.value.__notes__[0]


def test_signature_runner() -> None:
    ours, theirs = pair()
    assert ours.get_signature_list() == theirs.get_signature_list()
    x = randn(RNG, 2, 4)
    a, b = ours.get_signature_runner(), theirs.get_signature_runner("serving_default")
    np.testing.assert_allclose(a(x=x)["y"], b(x=x)["y"], rtol=1e-5)
    assert _equal(a.get_input_details()["x"]["name"], b.get_input_details()["x"]["name"])
    with pytest.raises(ModelError, match="expected inputs"):
        a(z=x)
    with pytest.raises(ModelError, match="not found"):
        ours.get_signature_runner("nothing")


def test_a_signature_resizes_only_for_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the values are: an array, a list, one that fits only after another call of resize_tensor_input."""
    ours, sizes = Interpreter(CONTENT), []
    resize = ours.resize_tensor_input
    monkeypatch.setattr(
        ours, "resize_tensor_input", lambda *args, **more: (sizes.append(args[1]), resize(*args, **more))
    )
    runner = ours.get_signature_runner()
    x = randn(RNG, 2, 4)
    for value in (x, x, x.tolist(), x[:1], x[:1], x):
        try:
            runner(x=np.float32(value))
        finally:
            resize(0, (3, 4))
    assert sizes == [(2, 4)] * 3 + [(1, 4)] * 2 + [(2, 4)]
    sizes.clear()
    for value in (x, x, [[1.0] * 4], x[:1], x):
        np.testing.assert_allclose(runner(x=np.float32(value))["y"].shape, np.shape(value))
    assert sizes == [(2, 4), (1, 4), (2, 4)]


def test_set_tensor_refuses_wrong_shape_and_type() -> None:
    interpreter = Interpreter(CONTENT)
    interpreter.allocate_tensors()
    with pytest.raises(ShapeError, match=r"expected shape \[1, 4\], got \[4\]"):
        interpreter.set_tensor(0, np.zeros(4, np.float32))
    with pytest.raises(ShapeError, match="expected float32, got float64"):
        interpreter.set_tensor(0, np.zeros((1, 4)))
    with pytest.raises(ModelError, match="neither an input nor a variable"):
        interpreter.set_tensor(1, np.zeros(4, np.float32))


def test_order_of_calls_is_checked() -> None:
    interpreter = Interpreter(CONTENT)
    with pytest.raises(ModelError, match="allocate_tensors"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]["index"]
    assert interpreter.get_tensor(output).tolist() == [[0.0] * 4]
    with pytest.raises(ModelError, match=r"invoke\(\) first"):
        interpreter.get_tensor(2)
    with pytest.raises(ModelError, match="out of range"):
        interpreter.get_tensor(99)


def test_intermediates_only_when_preserved() -> None:
    x = randn(RNG, 1, 4)
    dropped = Interpreter(CONTENT)
    kept = Interpreter(CONTENT, experimental_preserve_all_tensors=True)
    theirs = LiteRT(model_content=CONTENT, experimental_preserve_all_tensors=True)
    for interpreter in (dropped, kept, theirs):
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
    np.testing.assert_allclose(kept.get_tensor(2), theirs.get_tensor(2), rtol=1e-6)
    with pytest.raises(ModelError, match="experimental_preserve_all_tensors"):
        dropped.get_tensor(2)


def test_tensor_gives_a_view_to_write_through() -> None:
    interpreter = Interpreter(CONTENT)
    interpreter.allocate_tensors()
    interpreter.tensor(0)().fill(2.0)
    np.testing.assert_array_equal(interpreter.get_tensor(0), np.full((1, 4), 2.0, np.float32))


def test_constructor_takes_one_model() -> None:
    with pytest.raises(ModelError, match="exactly one of"):
        Interpreter()
    with pytest.raises(ModelError, match="num_threads"):
        Interpreter(CONTENT, num_threads=0)
    assert Interpreter(model_content=CONTENT, num_threads=2).get_input_details()
    assert Interpreter(two_layers()).get_input_details()


def custom_model(op: Op) -> Model:
    """One custom node between an input and an output."""
    g = Graph()
    x = g.input((2, 3))
    (y,) = g.node(op, [x], [g.tensors[x]], CustomOptions(b"\x03"))
    return model(g.build(y))


def test_custom_op_from_a_callable() -> None:
    content = write(custom_model(unknown_op("Repeat", True)))

    def repeat(options: bytes, inputs: list[Any]) -> list[Any]:
        return [np.repeat(inputs[0], options[0], axis=0)]

    interpreter = Interpreter(content, custom_ops={"Repeat": repeat})
    interpreter.allocate_tensors()
    x = randn(RNG, 2, 3)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.repeat(x, 3, axis=0))
    assert interpreter.get_output_details()[0]["shape"].tolist() == [6, 3]


def test_a_missing_custom_op_is_named() -> None:
    interpreter = Interpreter(write(custom_model(unknown_op("Repeat", True))))
    with pytest.raises(UnsupportedOp, match="Repeat") as caught:
        interpreter.allocate_tensors()
    assert "custom_ops" in str(caught.value)
    assert "node 0" in caught.value.__notes__[0]


def test_values_are_dropped_after_their_last_use() -> None:
    """A chain of tensors never holds more than two of them at once, even without the garbage collector."""
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def watch(options: CustomOptions, inputs: Any) -> list[Any]:
        result = inputs[0] + 1
        made.append(weakref.ref(result))
        alive.append(sum(tensor() is not None for tensor in made))
        return [result]

    op = Op("Watch", CustomOptions, lambda options, specs: [specs[0]], watch, custom=True)
    g = Graph()
    tensor = g.input((1000, 7))
    for _ in range(6):
        (tensor,) = g.node(op, [tensor], [g.tensors[tensor]], CustomOptions())
    interpreter = Interpreter(model(g.build(tensor)))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert alive == [1, 2, 2, 2, 2, 2]
    assert isinstance(interpreter.model.subgraphs[0].nodes[0], Node)


def test_operands_of_the_last_node_are_kept() -> None:
    interpreter = Interpreter(CONTENT)
    theirs = LiteRT(
        model_content=CONTENT, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    for batch in (1, 3):
        x = randn(RNG, batch, 4)
        for runtime in (interpreter, theirs):
            runtime.resize_tensor_input(0, x.shape)
            runtime.allocate_tensors()
            runtime.set_tensor(0, x)
            runtime.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(4), theirs.get_tensor(4), rtol=1e-6)
    interpreter.resize_tensor_input(0, [2, 4])
    interpreter.allocate_tensors()
    with pytest.raises(ModelError, match="invoke"):
        interpreter.get_tensor(4)

"""What a converted file's signatures are called, and models that are handed over in unusual circumstances."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from support.conversion import assert_all_close, assert_computes, invoke, litert, runtimes  # noqa: E402
from support.keras_models import stack  # noqa: E402
from support.tf_v1 import old_control_flow  # noqa: E402

v1 = tf.compat.v1
_VECTOR = tf.TensorSpec((2,), tf.float32)
_X = np.float32([3, 4])


class Codec(tf.Module):
    """Two functions that share a variable."""

    def __init__(self) -> None:
        super().__init__()
        self.key = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[_VECTOR, _VECTOR], autograph=False)
    def encode(self, X: Any, Offset: Any) -> Any:  # noqa: N803
        return {"Code": X + self.key - Offset}

    @tf.function(input_signature=[tf.TensorSpec((2,), tf.float32, name="Code")], autograph=False)
    def decode(self, code: Any) -> Any:
        return code - self.key


def _signatures(content: bytes) -> Any:
    return Interpreter(model_content=content).get_signature_list()


def test_names_are_spelled_as_in_the_model_and_all_signatures_are_taken(tmp_path: Path) -> None:
    module = Codec()
    tf.saved_model.save(module, tmp_path, signatures={"write": module.encode, "serving_default": module.decode})
    converter = Converter.from_saved_model(tmp_path)
    assert _signatures(converter.convert()) == {
        "serving_default": {"inputs": ["Code"], "outputs": ["output_0"]},
        "write": {"inputs": ["Offset", "X"], "outputs": ["Code"]},
    }
    for runtime in runtimes(converter.convert()):
        assert_all_close(invoke(runtime, [_X]), [np.float32([2, 2])])
        result = runtime.get_signature_runner("write")(X=_X, Offset=np.ones(2, np.float32))
        assert_all_close([result["Code"]], [np.float32([3, 5])])
    chosen = Converter.from_saved_model(tmp_path, ["write"])
    assert list(_signatures(chosen.convert())) == ["write"]


def test_several_functions_have_their_own_names() -> None:
    module = Codec()
    functions = [f.get_concrete_function() for f in (module.encode, module.decode, module.decode)]
    content = Converter.from_concrete_functions(functions, module).convert()
    assert list(_signatures(content)) == ["encode", "decode", "decode_1"]


def test_an_exported_keras_model_has_one_signature(tmp_path: Path) -> None:
    import keras

    inputs = keras.Input((2,), name="X")
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    model.export(tmp_path, verbose=False)
    for converter in (Converter.from_saved_model(tmp_path), Converter.from_keras_model(model)):
        assert _signatures(converter.convert()) == {"serving_default": {"inputs": ["X"], "outputs": ["output_0"]}}


def test_inside_of_a_graph(tmp_path: Path) -> None:
    module, model = Codec(), stack(tf.keras.layers.ReLU(), shape=(2,))
    tf.saved_model.save(module, tmp_path, signatures=module.decode)
    converters = (
        Converter.from_saved_model(tmp_path),
        Converter.from_concrete_functions([module.decode.get_concrete_function()], module),
        Converter.from_keras_model(model),
    )
    for converter, expected in zip(converters, ([2, 2], [2, 2], [[3, 4]]), strict=True):
        with tf.Graph().as_default():
            content = converter.convert()
        (result,) = invoke(Interpreter(model_content=content), [_X.reshape(np.shape(expected))])
        assert_all_close([result], [np.float32(expected)])


def _frozen(number: float) -> Any:
    """Return a graph whose functions are always called the same."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, (2,), "x")
        tf.identity(tf.cond(x[0] > 0, lambda: x * number, lambda: x), "y")
    text = str(graph.as_graph_def())
    for k, function in enumerate(graph.as_graph_def().library.function):
        text = text.replace(f'"{function.signature.name}"', f'"branch_{k}"')
    return text


def test_frozen_graphs_may_have_functions_of_one_name(tmp_path: Path) -> None:
    for number in (2.0, 3.0):
        path = tmp_path / f"{number}.pbtxt"
        path.write_text(_frozen(number))
        content = Converter.from_frozen_graph(path, ["x"], ["y"]).convert()
        assert_all_close(invoke(Interpreter(model_content=content), [_X]), [_X * np.float32(number)])


@pytest.mark.parametrize("frozen", [False, True])
def test_attributes_that_a_file_leaves_out_have_their_defaults(frozen: bool, tmp_path: Path) -> None:
    path = tmp_path / "model"
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, (1, 4, 4, 2), "x")
        y = tf.nn.conv2d(x, tf.constant(np.arange(36, dtype=np.float32).reshape(3, 3, 2, 2)), 1, "SAME")
        y = tf.reduce_mean(tf.nn.leaky_relu(tf.nn.max_pool2d(y - 200, 2, 2, "SAME")), [1, 2])
        y = tf.identity(tf.squeeze(tf.matmul(y, np.ones((2, 3), np.float32))), "y")
        value = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
        expected = session.run(y, {x: value})
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder = v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, strip_default_attrs=True
        )
        builder.save()
    converter = Converter.from_saved_model(path)
    if frozen:
        converter = Converter.from_frozen_graph(_stripped(graph.as_graph_def(), tmp_path), ["x"], ["y"])
    assert_computes(converter.convert(), [[value]], [[expected]])


def _stripped(definition: Any, folder: Path) -> Path:
    from tensorflow.python.framework import op_def_registry

    for node in definition.node:
        for attr in op_def_registry.get(node.op).attr:
            if attr.HasField("default_value") and node.attr[attr.name] == attr.default_value:
                del node.attr[attr.name]
    (folder / "graph.pb").write_bytes(definition.SerializeToString())
    return folder / "graph.pb"


def test_an_optimizer_of_an_unknown_class(tmp_path: Path) -> None:
    module = Codec()
    module.optimizer = v1.train.AdamOptimizer()
    module.optimizer.apply_gradients([(tf.ones(2), module.key)])
    tf.saved_model.save(module, tmp_path, signatures=module.decode)
    content = Converter.from_saved_model(tmp_path).convert()
    assert_all_close(invoke(Interpreter(model_content=content), [_X]), [_X - module.key.numpy()])


def test_a_merge_of_four(tmp_path: Path) -> None:
    from tensorflow.python.ops.gen_control_flow_ops import merge, switch

    with old_control_flow() as graph:
        x = v1.placeholder(tf.float32, (2,), "x")
        low, high = switch(x, x[0] > 0)
        lower, low = switch(low * 1.0, x[0] > -10)
        high, higher = switch(high * 1.0, x[0] > 10)
        tf.identity(merge([higher * 2, low * 3, high * 4, lower * 5])[0], "y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    content = Converter.from_frozen_graph(path, ["x"], ["y"]).convert()
    for number, factor in ((20.0, 2), (-5.0, 3), (5.0, 4), (-20.0, 5)):
        value = np.float32([number, 1])
        assert_all_close(invoke(Interpreter(model_content=content), [value]), [value * factor])


class Open(tf.Module):
    """Functions of open dimensions that only some sizes fit, and what these are in a file."""

    FITTING: ClassVar = {"fill": [4, 8], "divide": [3, 8], "unstack": [3, 8], "unfold": [1, 392], "both": [1, 9, 8]}

    @tf.function(input_signature=[tf.TensorSpec((None, 8), name="x")], autograph=False)
    def fill(self, x: Any) -> Any:
        return tf.reshape(x, [1, 4, 4, 2]) * 2.0

    @tf.function(input_signature=[tf.TensorSpec((None, 8), name="x")], autograph=False)
    def divide(self, x: Any) -> Any:
        return tf.split(x, 3)

    @tf.function(input_signature=[tf.TensorSpec((None, 8), name="x")], autograph=False)
    def unstack(self, x: Any) -> Any:
        return tf.unstack(x, 3)

    @tf.function(input_signature=[tf.TensorSpec((1, None), name="x")], autograph=False)
    def unfold(self, x: Any) -> Any:
        return tf.reshape(x, [1, 28, 14]) + 1.0

    @tf.function(input_signature=[tf.TensorSpec((None, None, 8), name="x")], autograph=False)
    def both(self, x: Any) -> Any:
        return tf.split(x, 9, 1)[4]


def test_open_dimensions_get_sizes_that_fit() -> None:
    """Each signature by itself."""
    module, random = Open(), np.random.default_rng(3)
    functions = {key: getattr(module, key).get_concrete_function() for key in Open.FITTING}
    content = Converter.from_concrete_functions(list(functions.values())).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        for key, shape in Open.FITTING.items():
            runner = runtime.get_signature_runner(key)
            (details,) = runner.get_input_details().values()
            assert details["shape"].tolist() == shape
            assert -1 in details["shape_signature"]
            x = random.random(shape, np.float32)
            expected = [np.asarray(y) for y in tf.nest.flatten(functions[key](tf.constant(x)))]
            got = runner(x=x)
            assert_all_close([got[f"output_{i}"] for i in range(len(expected))], expected)


def test_open_dimensions_that_nothing_fits() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        return tf.reshape(x, [1, 4, 4, 2]) * 2.0, tf.split(y, 3), z + 1.0

    specs = [tf.TensorSpec(shape, name=name) for name, shape in (("x", (None, 8)), ("y", (None, 2)), ("z", (2,)))]
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    with pytest.raises(ConversionError, match=r"'x': \[None, 8\], 'y': \[None, 2\]\}.*RESHAPE: 8 elements") as caught:
        Converter.from_concrete_functions([concrete]).convert()
    assert "input_shapes={'x': (...), 'y': (...)}" in str(caught.value)
    content = Converter.from_concrete_functions([concrete], input_shapes={"x": (4, 8), "y": (6, 2)}).convert()
    x, y, z = (np.ones(shape, np.float32) for shape in ((4, 8), (6, 2), (2,)))
    assert [result.shape for result in invoke(litert(content), [x, y, z])] == [(1, 4, 4, 2), *[(2, 2)] * 3, (2,)]

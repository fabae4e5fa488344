"""LSTM layers on integers: equal in LiteRT's reference kernels, the interpreter and the device."""

from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from litecl.converter import Converter, Quantization  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError, LiteclError  # noqa: E402
from litecl.interpreter.file.reader import read  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.schema import TensorType  # noqa: E402
from support.conversion import invoke, litert  # noqa: E402
from support.keras_models import stack  # noqa: E402

L = keras.layers
_STEPS, _FEATURES = 12, 6


def _samples(batch: int) -> list[list[Array]]:
    random = np.random.default_rng(0)
    return [[random.standard_normal((batch, _STEPS, _FEATURES)).astype(np.float32)] for _ in range(12)]


def _model(*layers: Any, batch: int | None = 1) -> Any:
    keras.utils.set_random_seed(3)
    return stack(*layers, shape=(_STEPS, _FEATURES), batch_size=batch)


_LAYERS = {
    "last step": lambda: [L.LSTM(16), L.Dense(5)],
    "two, one backwards": lambda: [L.LSTM(9, return_sequences=True), L.LSTM(7, go_backwards=True)],
    "sequence without bias": lambda: [L.LSTM(9, return_sequences=True, use_bias=False)],
}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", _LAYERS)
def test_layers(name: str, batch: int) -> None:
    model = _model(*_LAYERS[name](), batch=batch)
    how = Quantization(activations="int8", data=_samples(batch), strict=True)
    content = Converter.from_keras_model(model, quantize=how).convert()
    (graph,) = read(content).subgraphs
    for node in graph.nodes:
        if node.op.name == "UNIDIRECTIONAL_SEQUENCE_LSTM":
            h, c = (graph.tensors[node.inputs[position]] for position in (18, 19))
            assert (h.type, c.type, graph.tensors[node.outputs[0]].type) == (TensorType.INT8, TensorType.INT16, h.type)
            assert h.is_variable and c.is_variable
    device = Interpreter(model_content=content, delegates=[CLDelegate(dynamic_range="reference")])
    runtimes = [litert(content, "reference"), Interpreter(model_content=content), device]
    expected, found = [], []
    for values in _samples(batch)[:4]:  # each begins anew
        results = [invoke(runtime, values)[0] for runtime in runtimes]
        for got in results[1:]:
            np.testing.assert_array_equal(got, results[0])
        expected.append(np.asarray(model(*values)))
        found.append(results[0])
    assert all(row.claimed for row in device.delegation_report().nodes)
    noise = np.square(np.stack(expected) - np.stack(found)).sum()
    assert 10 * np.log10(np.square(np.stack(expected)).sum() / noise) > 28


def test_a_recipe_of_integers_throughout() -> None:
    model = _model(L.LSTM(16), L.Dense(5))
    whole = Quantization(activations="int8", data=_samples(1), input_type="int8", output_type="int8")
    content = Converter.from_keras_model(model, quantize=whole).convert()
    recipe = Quantization(recipe="static_wi8_ai8", data=_samples(1), strict=True)
    assert Converter.from_keras_model(model, quantize=recipe).convert() == content


def test_any_batch() -> None:
    model = _model(L.LSTM(16), L.Dense(5), batch=None)
    how = Quantization(activations="int8", data=_samples(3), strict=True)
    content = Converter.from_keras_model(model, quantize=how).convert()
    runtimes = [litert(content, "reference"), Interpreter(model_content=content)]
    ((x,), *_) = _samples(3)
    for batch in (1, 3, 1):
        expected = np.asarray(model(x[:batch]))
        results = [invoke(runtime, [x[:batch]])[0] for runtime in runtimes]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_allclose(results[0], expected, rtol=0, atol=0.02)


def test_the_memory_is_measured_at_every_step() -> None:
    """A cell that forgets at once has its largest memory in the middle."""
    model = _model(L.LSTM(1, return_sequences=True))
    kernel, recurrent, bias = (np.zeros(w.shape, np.float32) for w in model.layers[-1].weights)
    kernel[0, 2], bias[:] = 5, [9, -9, 0, 9]  # the candidate follows feature 0
    model.layers[-1].set_weights([kernel, recurrent, bias])
    x = np.zeros((1, _STEPS, _FEATURES), np.float32)
    x[0, 4, 0] = 1
    converter = Converter.from_keras_model(model, quantize=Quantization(activations="int8", data=[[x]]))
    content = converter.convert()
    report = converter.report.quantization
    assert report is not None
    memory = [layer for layer in report.layers if layer.op == "FILL" and layer.type == "INT16"]
    assert [layer.high for layer in memory] == pytest.approx([1.0], abs=1e-3)
    np.testing.assert_allclose(invoke(litert(content, "reference"), [x])[0], model(x), rtol=0, atol=0.01)


def test_the_report_tells_what_a_layer_adds() -> None:
    how = Quantization(activations="int8", data=_samples(1), sensitivity=True)
    converter = Converter.from_keras_model(_model(L.LSTM(8), L.Dense(4)), quantize=how)
    converter.convert()
    report = converter.report.quantization
    assert report is not None
    (layer,) = [layer for layer in report.layers if layer.op == "UNIDIRECTIONAL_SEQUENCE_LSTM"]
    assert layer.output_sqnr_db is not None and 20 < layer.output_sqnr_db < 80


def _with_initial_state() -> Any:
    x, state = keras.Input((_STEPS, _FEATURES), batch_size=1), keras.Input((8,), batch_size=1)
    return keras.Model([x, state], L.LSTM(8)(x, initial_state=[state, state]))


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (lambda: _model(L.LSTM(8, activation="relu")), {}),
        (lambda: _model(L.LSTM(8)), {"activations": "int16"}),
        (lambda: _model(L.LSTM(8)), {"skip": ("UNIDIRECTIONAL_SEQUENCE_LSTM",)}),
        (lambda: _model(L.Bidirectional(L.LSTM(8))), {}),
        (_with_initial_state, {}),
    ],
    ids=["relu", "16 bits", "skipped", "both ways", "a state that is given"],
)
def test_layers_that_stay_in_float(build: Any, options: dict[str, Any]) -> None:
    model = build()
    states = [np.full((1, 8), 0.25, np.float32)] * (len(model.inputs) - 1)
    data = [[*sample, *states] for sample in _samples(1)]
    how = {"activations": "int8", "data": data} | options
    content = Converter.from_keras_model(model, quantize=Quantization(**how)).convert()
    (graph,) = read(content).subgraphs
    layers = [node for node in graph.nodes if node.op.name.endswith("SEQUENCE_LSTM")]
    assert all(graph.tensors[t].type == TensorType.FLOAT32 for node in layers for t in node.outputs)
    (got,), expected = invoke(litert(content), data[0]), np.asarray(model(data[0] if states else data[0][0]))
    np.testing.assert_allclose(got, expected, rtol=0, atol=0.05 * np.abs(expected).max())
    if not how.get("skip"):
        with pytest.raises(ConversionError, match=r"SEQUENCE_LSTM.*states stay in float"):
            Converter.from_keras_model(model, quantize=Quantization(**how, strict=True)).convert()


@pytest.mark.parametrize("name", _LAYERS)
def test_states_as_variables(name: str) -> None:
    """From initial states, the bits are those of the file that zeroes its states."""
    model = _model(*_LAYERS[name]())
    how = Quantization(activations="int8", data=_samples(1), strict=True, input_type="int8", output_type="int8")
    zeroed = Converter.from_keras_model(model, quantize=how).convert()
    content = Converter.from_keras_model(model, quantize=how, lstm="variables").convert()
    assert "FILL" not in {node.op.name for node in read(content).subgraphs[0].nodes}
    pairs = [(litert(content, kernels), litert(zeroed, kernels)) for kernels in ("reference", "optimised")]
    pairs.append((Interpreter(model_content=content), Interpreter(model_content=zeroed)))
    x, *_ = _integers()
    for carried, fresh in pairs:
        first, expected = invoke(carried, [x])[0], invoke(fresh, [x])[0]
        np.testing.assert_array_equal(first, expected)
        assert not np.array_equal(invoke(carried, [x])[0], expected)  # it goes on from its states
        carried.reset_all_variables()
        np.testing.assert_array_equal(invoke(carried, [x])[0], expected)


@pytest.mark.parametrize("name", ["last step", "sequence without bias"])
def test_states_as_variables_in_tflite_micro(name: str) -> None:
    pytest.importorskip("tflite_micro", reason="needs tflite-micro: pip install tflite-micro")
    from litecl.conformance import tflite_micro

    model = _model(*_LAYERS[name]())
    how = Quantization(activations="int8", data=_samples(1), strict=True, input_type="int8", output_type="int8")
    content = Converter.from_keras_model(model, quantize=how, lstm="variables").convert()
    got, expected = [], []
    for x in _integers():
        got.append(invoke(tflite_micro.load(content), [x])[0].astype(int))
        expected.append(invoke(litert(content, "reference"), [x])[0].astype(int))
    assert np.abs(np.stack(got) - np.stack(expected)).max() <= 2  # its LOGISTIC and TANH round in their own way
    assert np.std(expected) > 8
    runtime = tflite_micro.load(content)
    first = invoke(runtime, [x])[0]
    runtime.invoke()
    (output,) = runtime.get_output_details()
    assert not np.array_equal(runtime.get_tensor(output["index"]), first)  # it goes on from its states
    runtime.reset_all_variables()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
    runtime.invoke()
    np.testing.assert_array_equal(runtime.get_tensor(output["index"]), first)
    zeroed = Converter.from_keras_model(model, quantize=how).convert()
    with pytest.raises(LiteclError, match="Fill only currently supports float32"):
        invoke(tflite_micro.load(zeroed), [x])


@pytest.mark.parametrize("name", _LAYERS)
def test_vela_places_integer_layers_on_the_npu(name: str) -> None:
    pytest.importorskip("ethosu", reason="needs Vela: pip install ethos-u-vela")
    from litecl.conformance import vela

    model = _model(*_LAYERS[name]())
    how = Quantization(activations="int8", data=_samples(1), strict=True, input_type="int8", output_type="int8")
    zeroed = Converter.from_keras_model(model, quantize=how).convert()
    content = Converter.from_keras_model(model, quantize=how, lstm="variables").convert()
    on_npu = {"UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "FULLY_CONNECTED"}
    others = [
        [node for node in read(file).subgraphs[0].nodes if node.op.name not in on_npu] for file in (zeroed, content)
    ]
    placements = [vela.place(file) for file in (zeroed, content)]
    assert [placement.cpu for placement in placements] == [len(nodes) for nodes in others]
    assert all(placement.npu > _STEPS for placement in placements)  # several operators for each step
    assert {node.op.name for node in others[1]} <= {"REVERSE_V2"}


def _integers() -> list[Array]:
    random = np.random.default_rng(1)
    return [random.integers(-128, 128, (1, _STEPS, _FEATURES)).astype(np.int8) for _ in range(4)]


def test_states_as_variables_of_any_batch_are_refused() -> None:
    converter = Converter.from_keras_model(_model(L.LSTM(4), batch=None), lstm="variables")
    with pytest.raises(ConversionError, match=r'lstm="variables": expected a batch of fixed size'):
        converter.convert()


def test_states_as_variables_beside_nodes_without_results() -> None:
    """ASSIGN_VARIABLE has none."""
    tf = pytest.importorskip("tensorflow")

    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable(tf.zeros(3))

        @tf.function(input_signature=[tf.TensorSpec((3,), tf.float32, "x")])
        def add(self, x: Any) -> Any:
            return self.total.assign_add(x) + 1.0

    counter = Counter()
    source = Converter.from_concrete_functions([counter.add.get_concrete_function()], counter, lstm="variables")
    runner = Interpreter(source.convert()).get_signature_runner()
    for expected in (2, 3):
        np.testing.assert_array_equal(runner(x=np.ones(3, np.float32))["output_0"], np.full(3, expected))

"""Composites: those that become the operator made for them, and those that are converted from their bodies."""

import struct
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Builder, Composite, Fusion, Value  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError  # noqa: E402
from litecl.interpreter.file.options import CustomOptions  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from litecl.interpreter.ops.unary import SQUARE  # noqa: E402
from support.conversion import assert_all_close, assert_computes, converter_of, invoke, litert, operators, runtimes  # noqa: E402
from support.tf_composites import DEPTH, TABLE, cell, composite, lookup, normal, random  # noqa: E402


def _float(*shape: int | None) -> Any:
    return tf.TensorSpec(shape, tf.float32)


@pytest.mark.parametrize("name", ["embedding_matmul", "embedding_lookup"])
@pytest.mark.parametrize("shape", [(5,), (None,), (2, 3)], ids=str)
def test_embedding(name: str, shape: tuple[int | None, ...]) -> None:
    converter = converter_of(lookup(name), tf.TensorSpec(shape, tf.int32))
    content = converter.convert()
    assert converter.report.operators["EMBEDDING_LOOKUP"] == 1
    assert [(fusion.name, fusion.made) for fusion in converter.report.fusions] == [(name, True)]
    ids = random.integers(0, 10, [d or 7 for d in shape]).astype(np.int32)
    assert_computes(content, [[ids]], [[TABLE[ids] * 2]])


def test_unmet_contract_is_told_and_the_body_converted() -> None:
    @composite("embedding_matmul")
    def scaled(table: Any, weights: Any, ids: Any) -> Any:
        return tf.gather(table * weights, ids)

    ids = tf.TensorSpec((3,), tf.int32)
    converter = converter_of(lambda ids: scaled(tf.constant(TABLE), tf.constant(2.0), ids), ids)
    content = converter.convert()
    (fusion,) = converter.report.fusions
    assert not fusion.made
    assert fusion.reason == "expected 2 operands, got 3"
    assert "not fused embedding_matmul" in str(converter.report)
    ids = np.array([1, 5, 9], np.int32)
    assert_all_close(invoke(litert(content), [ids]), [TABLE[ids] * 2])


def test_composite_that_nobody_knows_is_converted_from_its_body() -> None:
    twice = composite("somebody.Twice")(lambda x: x * 2.0)
    converter = converter_of(twice, _float(3))
    assert operators(converter.convert_to_model()) == {"MUL": 1}
    assert converter.report.fusions[0].reason == "no fusion is registered under this name"


@pytest.mark.parametrize("projected", [False, True], ids=["plain", "projected"])
@pytest.mark.parametrize(
    "name",
    [
        "LSTMCellSimple",
        "lingvo.LSTMCellSimple",
        "LSTMCellSimple,CoupleInputForgetGates",
        "LayerNormalizedLstmCellSimple",
        "lingvo.LayerNormalizedLSTMCellSimple",
        "LayerNormalizedLstmCellSimple,CoupleInputForgetGates",
    ],
)
def test_lingvo_cell(name: str, projected: bool) -> None:
    function = cell(name, projected, "Layer" in name)
    converter = converter_of(function, _float(2, DEPTH))
    content = converter.convert()
    assert converter.report.operators == {"FILL": 2, "LSTM": 1}
    for runtime in (litert(content), Interpreter(model_content=content)):
        for _ in range(2):
            x = normal(2, DEPTH)
            (got,), expected = invoke(runtime, [x]), np.asarray(function(tf.constant(x)))
            np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def test_lingvo_cell_of_open_batch_is_converted_from_its_body() -> None:
    function = cell("LSTMCellSimple", True, False)
    converter = converter_of(function, _float(None, DEPTH))
    content = converter.convert()
    assert "LSTM" not in converter.report.operators
    assert "known shape" in (converter.report.fusions[0].reason or "")
    x = normal(2, DEPTH)
    assert_all_close(invoke(litert(content), [x]), [np.asarray(function(tf.constant(x)))])


_ATTRIBUTES = (
    'name: "my.op" attr { key: "tfl_fusable_op" value { b: true } } attr { key: "alpha" value { f: 0.5 } } '
    'attr { key: "times" value { i: 3 } } attr { key: "mode" value { s: "fast" } }'
)


def test_fusable_op_is_a_custom_operator_with_its_attributes() -> None:
    @composite(_ATTRIBUTES)
    def mine(x: Any, y: Any) -> Any:
        return x + y, x - y

    content = converter_of(lambda x: mine(x, x * 2)[0] + mine(x, x * 3)[1], _float(2, 3)).convert()
    seen = []

    def run(options: bytes, inputs: list[Any]) -> list[Array]:
        seen.append(CustomOptions(options).fields())
        return [inputs[0] + inputs[1], inputs[0] - inputs[1]]

    x = normal(2, 3)
    interpreter = Interpreter(model_content=content, custom_ops={"my.op": run})
    assert_all_close(invoke(interpreter, [x]), [x])
    assert seen == [{"alpha": 0.5, "mode": "fast", "times": 3}] * 2


def test_max_unpooling_has_pool_params() -> None:
    implements = (
        'name: "addons:MaxUnpooling2D" attr { key: "pool_size" value { list { i: 2 i: 3 } } } '
        'attr { key: "strides" value { list { i: 4 i: 5 } } } attr { key: "padding" value { s: "SAME" } }'
    )
    unpool = composite(implements)(lambda x, indices: tf.tile(x, [1, 4, 5, 1]))
    model = converter_of(unpool, _float(1, 2, 2, 3), tf.TensorSpec((1, 2, 2, 3), tf.int32)).convert_to_model()
    (node,) = model.subgraphs[0].nodes
    assert (node.op.name, node.op.custom) == ("MaxUnpooling2D", True)
    assert struct.unpack("<10i", node.options.data) == (1, 5, 4, 3, 2, 0, 0, 0, 0, 0)


def test_non_max_suppression() -> None:
    @composite("non_max_suppression_padded_v2")
    def suppress(boxes: Any, scores: Any, count: Any, overlap: Any, score: Any) -> Any:
        return tf.image.non_max_suppression_padded(boxes, scores, count, overlap, score, pad_to_max_output_size=True)

    def function(boxes: Any, scores: Any) -> Any:
        return suppress(boxes, scores, tf.constant(4), tf.constant(0.5), tf.constant(0.1))

    content = converter_of(function, _float(9, 4), _float(9)).convert()
    corners = random.uniform(0, 1, (9, 2))
    boxes = np.concatenate([corners, corners + random.uniform(0.2, 1, (9, 2))], 1).astype(np.float32)
    scores = random.uniform(0, 1, 9).astype(np.float32)
    indices, count = (np.asarray(y) for y in function(tf.constant(boxes), tf.constant(scores)))
    got_indices, got_count = invoke(litert(content), [boxes, scores])
    assert got_count == count
    np.testing.assert_array_equal(got_indices[:count], indices[:count])


def test_detection_post_process_runs_in_litert() -> None:
    numbers = {"max_detections": 3, "max_classes_per_detection": 1, "num_classes": 2}
    scales = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
    floats = {"nms_score_threshold": 0.0, "nms_iou_threshold": 0.5, **scales}
    parts = [
        *(f'attr {{ key: "{k}" value {{ i: {v} }} }}' for k, v in numbers.items()),
        *(f'attr {{ key: "{k}" value {{ f: {v} }} }}' for k, v in floats.items()),
        'attr { key: "use_regular_nms" value { b: false } }',
    ]

    @composite(f'name: "TFLite_Detection_PostProcess" {" ".join(parts)}')
    def detect(boxes: Any, scores: Any, anchors: Any) -> Any:
        return tf.zeros((1, 3, 4)), tf.zeros((1, 3)), tf.zeros((1, 3)), tf.zeros((1,))

    anchors = np.array([[0.5, 0.5, 1, 1], [0.2, 0.2, 0.3, 0.3]], np.float32)
    content = converter_of(
        lambda boxes, scores: detect(boxes, scores, tf.constant(anchors)), _float(1, 2, 4), _float(1, 2, 3)
    ).convert()
    scores = np.array([[[0.1, 0.9, 0.2], [0.1, 0.3, 0.8]]], np.float32)
    boxes, classes, best, count = invoke(litert(content), [np.zeros((1, 2, 4), np.float32), scores])
    assert count == 2
    np.testing.assert_allclose(best[0, :2], [0.9, 0.8])
    np.testing.assert_array_equal(classes[0, :2], [0, 1])
    np.testing.assert_allclose(boxes[0, 0], [0, 0, 1, 1], atol=1e-6)


def _keras_2_lstm(x: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
    """Return what tf_keras's standard_lstm computes, with a loop over time."""
    made = tf.TensorArray(tf.float32, x.shape[1], element_shape=h.shape)

    def step(t: Any, h: Any, c: Any, made: Any) -> Any:
        i, f, g, o = tf.split(tf.matmul(x[:, t], kernel) + tf.matmul(h, recurrent) + bias, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, h, c, made.write(t, h)

    _, h, c, made = tf.while_loop(lambda t, *rest: t < x.shape[1], step, [0, h, c, made])
    return h, tf.transpose(made.stack(), [1, 0, 2]), h, c, tf.constant(1.0)


def _keras_2_attributes() -> dict[str, Any]:
    return {"api_implements": "lstm_0", "api_preferred_device": "CPU", "time_major": False, "go_backwards": False}


@pytest.mark.parametrize("batch", [1, None])
def test_keras_2_lstm(batch: int | None) -> None:
    weights = normal(3, 16), normal(4, 16), normal(16)
    layer = tf.function(_keras_2_lstm, experimental_attributes=_keras_2_attributes(), autograph=False)

    def function(x: Any) -> Any:
        zero = tf.zeros((tf.shape(x)[0], 4))
        last, sequence, _, cell, _ = layer(x, zero, zero, *map(tf.constant, weights))
        return last, sequence, cell

    converter = converter_of(function, _float(batch, 5, 3))
    content = converter.convert()
    assert converter.report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 1
    for runtime in runtimes(content):
        x = normal(batch or 2, 5, 3)
        assert_all_close(invoke(runtime, [x]), [np.asarray(y) for y in function(tf.constant(x))])


def test_keras_2_lstm_with_mask_is_converted_from_its_body() -> None:
    def masked(*arguments: Any) -> Any:
        return _keras_2_lstm(*arguments[:6])

    layer = tf.function(masked, experimental_attributes=_keras_2_attributes(), autograph=False)
    weights = normal(3, 16), normal(4, 16), normal(16)

    def function(x: Any) -> Any:
        zero = tf.zeros((2, 4))
        return layer(x, zero, zero, *map(tf.constant, weights), tf.ones((2, 5), tf.bool))[1]

    converter = converter_of(function, _float(2, 5, 3))
    content = converter.convert()
    assert "mask" in (converter.report.fusions[0].reason or "")
    x = normal(2, 5, 3)
    assert_all_close(invoke(litert(content), [x]), [np.asarray(function(tf.constant(x)))])


def _squared(b: Builder, composite: Composite) -> Value:
    return b.op(SQUARE, composite.inputs)


def _only_vectors(composite: Composite) -> str | None:
    return None if composite.inputs[0].rank == 1 else "expected a vector"


def test_registered_fusion_comes_first() -> None:
    square = composite("mine.square")(lambda x: tf.exp(2.0 * tf.math.log(x)))
    for shape, made in (((3,), {"SQUARE": 1}), ((3, 2), {"LOG": 1, "MUL": 1, "EXP": 1})):
        converter = converter_of(square, _float(*shape)).register_fusion(Fusion("mine.square", _squared, _only_vectors))
        assert operators(converter.convert_to_model()) == made
        assert converter.report.fusions[0].reason == (None if len(made) == 1 else "expected a vector")
    ours = Fusion("embedding_matmul", lambda b, composite: b.op(SQUARE, composite.inputs[:1]))
    lookup = composite("embedding_matmul")(lambda table, ids: table)
    converter = converter_of(lookup, _float(2, 2), tf.TensorSpec((2,), tf.int32)).register_fusion(ours)
    assert operators(converter.convert_to_model()) == {"SQUARE": 1}


def test_fusion_that_gives_too_few_results_is_named() -> None:
    pair = composite("mine.pair")(lambda x: (x, x + 1))
    converter = converter_of(lambda x: pair(x), _float(3)).register_fusion(Fusion("mine.pair", _squared))
    with pytest.raises(ConversionError, match=r"mine\.pair.*gave 1 results, expected 2"):
        converter.convert()

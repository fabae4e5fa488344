"""Selective scans of Mamba blocks: converted, they are one launch on the device, and right."""

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras  # noqa: E402

from litecl.converter import Converter  # noqa: E402
from litecl.delegate import CLDelegate  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.graph import Array  # noqa: E402
from support import devices  # noqa: E402
from support.conversion import invoke, litert  # noqa: E402
from support.tf_scans import SelectiveScan, decays, selective_scan  # noqa: E402

_MODES: dict[str, dict[str, Any]] = {
    "one thread": {"num_threads": 1},
    "two threads": {"num_threads": 2},
    "OpenCL": {"device": devices.tested()[0]},
}


def _feeds(*shape: int, states: int) -> list[Array]:
    rng = np.random.default_rng(7)
    wide, narrow = shape, (*shape[:-1], states)
    return [rng.standard_normal(each).astype(np.float32) for each in (wide, wide, narrow, narrow)]


def _expected(x: Array, rate: Array, b: Array, c: Array) -> Array:
    """The scan of one sequence, in float64."""
    state, dt = np.zeros((x.shape[1], b.shape[1])), np.log1p(np.exp(rate.astype(np.float64)))
    rows = []
    for i in range(len(x)):
        state = np.exp(dt[i][:, None] * decays(*state.shape)) * state + np.outer(dt[i] * x[i], b[i])
        rows.append(state @ c[i])
    return np.array(rows)


def _on_device(content: bytes, feeds: list[Array], launches: int, **options: Any) -> Array:
    interpreter = Interpreter(content, delegates=[CLDelegate(strict=True, **options)])
    (result,) = invoke(interpreter, feeds)
    report = interpreter.delegation_report()
    assert all(node.claimed for node in report.nodes)
    assert report.counters.kernel_launches == launches
    return result


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("steps, channels, states", [(1, 1, 1), (5, 3, 7), (40, 33, 16), (9, 128, 4)])
def test_a_function(steps: int, channels: int, states: int, mode: str) -> None:
    feeds = _feeds(steps, channels, states=states)
    function = tf.function(selective_scan, autograph=False)
    concrete = function.get_concrete_function(*(tf.TensorSpec(feed.shape, tf.float32) for feed in feeds))
    content = Converter.from_concrete_functions([concrete]).convert()
    expected = _expected(*feeds)
    for got in (
        function(*feeds).numpy(),
        invoke(Interpreter(content), feeds)[0],
        invoke(litert(content), feeds)[0],
        _on_device(content, feeds, 1, **_MODES[mode]),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_layer(batch: int, mode: str) -> None:
    feeds = _feeds(batch, 12, 20, states=8)
    inputs = [
        keras.Input(feed.shape[1:], batch_size=batch, name=name) for name, feed in zip("xrbc", feeds, strict=True)
    ]
    model = keras.Model(inputs, SelectiveScan()(*inputs))
    content = Converter.from_keras_model(model).convert()
    share = np.linspace(-1, 1, 20)
    expected = np.array([_expected(*each) + share * each[0] for each in zip(*feeds, strict=True)])
    np.testing.assert_allclose(np.asarray(model(feeds)), expected, rtol=1e-5, atol=1e-5)
    got = _on_device(content, feeds, 1, **_MODES[mode])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)

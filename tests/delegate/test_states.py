"""States of recurrent operators on the device: kept there from run to run, read, set and reset."""

import numpy as np

from support.build import randn
from support.small_models import lstm, prepared, reference, run

RNG = np.random.default_rng(11)


def test_state_stays_on_the_device_until_it_is_reset() -> None:
    model_ = lstm()
    interpreter, expected = prepared(model_), reference(model_)
    inputs = [randn(RNG, 1, 3, 4) for _ in range(3)]
    for x in inputs:
        np.testing.assert_allclose(run(interpreter, x), run(expected, x), rtol=1e-4, atol=1e-5)
    report = interpreter.delegation_report()
    assert report.claimed == 1
    assert report.counters.bytes_to_device <= inputs[0].nbytes
    first = run(reference(model_), inputs[0])
    assert not np.allclose(run(interpreter, inputs[0]), first, atol=1e-3)
    interpreter.reset_all_variables()
    np.testing.assert_allclose(run(interpreter, inputs[0]), first, rtol=1e-4, atol=1e-5)


def test_state_can_be_read_and_set() -> None:
    model_ = lstm()
    interpreter, expected = prepared(model_), reference(model_)
    states = [t for t, spec in enumerate(model_.subgraphs[0].tensors) if spec.is_variable]
    x = randn(RNG, 1, 3, 4)
    run(interpreter, x), run(expected, x)
    for tensor in states:
        np.testing.assert_allclose(interpreter.get_tensor(tensor), expected.get_tensor(tensor), rtol=1e-4, atol=1e-5)
    value = randn(RNG, 1, 6)
    for runtime in (interpreter, expected):
        runtime.set_tensor(states[0], value)
    np.testing.assert_allclose(run(interpreter, x), run(expected, x), rtol=1e-4, atol=1e-5)

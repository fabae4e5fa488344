"""Operators that are compositions of TFLite's, in models of many: each result against TensorFlow's.

``tools/operators.py`` converts them one by one, beside TensorFlow's own converter.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.converter import Converter  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from litecl.interpreter.errors import ConversionError, ModelError  # noqa: E402
from support.conversion import converter_of, invoke, litert, runtimes  # noqa: E402
from support.tf_functions import TfFunction  # noqa: E402
from support.tf_operators import OPERATORS  # noqa: E402

_TOLERANCE = 2e-5  # of polynomials that stand for functions


def _groups() -> list[list[TfFunction]]:
    """Return the cases by their arguments."""
    groups: dict[Any, list[TfFunction]] = {}
    for case in OPERATORS:
        groups.setdefault((case.shapes, case.low, case.high, case.reference is None), []).append(case)
    return list(groups.values())


@pytest.mark.parametrize("cases", _groups(), ids=lambda cases: f"{cases[0]} and {len(cases) - 1} more")
def test_operators(cases: Sequence[TfFunction]) -> None:
    names: list[str] = []

    def traced(functions: Sequence[Callable[..., Any]]) -> Any:
        def function(*arguments: Any) -> Any:
            results = [tf.nest.flatten(compute(*arguments)) for compute in functions]
            names[:] = [case.name for case, made in zip(cases, results, strict=True) for _ in made]
            return tf.nest.flatten(results)

        return tf.function(function, autograph=False).get_concrete_function(*cases[0].specs)

    concrete = traced([case.function for case in cases])
    content = Converter.from_concrete_functions([concrete]).convert()
    values = cases[0].feeds()
    references = [case.reference for case in cases if case.reference is not None]
    computed = traced(references) if references else concrete
    expected = [np.asarray(y) for y in computed(*map(tf.constant, values))]
    for runtime in (litert(content), Interpreter(model_content=content)):
        for name, got, wanted in zip(names, invoke(runtime, values), expected, strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), name
            if wanted.dtype.kind in "fc":
                largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
                np.testing.assert_allclose(got, wanted, _TOLERANCE, _TOLERANCE * largest, err_msg=name)
            else:
                np.testing.assert_array_equal(got, wanted, name)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_to_roll_along_is_refused_as_the_model_runs(axis: int) -> None:
    specs = tf.TensorSpec([3, 4]), tf.TensorSpec([], tf.int32)
    content = converter_of(lambda x, axis: tf.roll(x, 1, axis), *specs).convert()
    for runtime in (litert(content), Interpreter(model_content=content)):
        with pytest.raises((ModelError, RuntimeError), match="GATHER"):
            invoke(runtime, [np.ones((3, 4), np.float32), np.int32(axis)])


@pytest.mark.parametrize("beta", [-2.0, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("bias", "alpha"), [(1.0, -1.0), (-3.0, 1.0)])
def test_negative_sums_of_a_local_response_are_nan_as_in_tensorflow(beta: float, bias: float, alpha: float) -> None:
    def function(x: Any) -> Any:
        return tf.nn.local_response_normalization(x, 1, bias, alpha, beta)

    x = np.random.default_rng(0).standard_normal((1, 2, 2, 5)).astype(np.float32) * 2
    content, wanted = converter_of(function, tf.TensorSpec(x.shape)).convert(), function(x).numpy()
    assert np.isnan(wanted).any() == (beta != 1)
    for runtime in runtimes(content):
        np.testing.assert_allclose(invoke(runtime, [x])[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("beta", [2.0**23 + 1, -(2.0**24), 2.0**25])
def test_negative_sums_of_a_local_response_are_refused_where_all_powers_are_whole(beta: float) -> None:
    def function(x: Any, alpha: float) -> Any:
        return tf.nn.local_response_normalization(x, 1, 1.0, alpha, beta)

    def convert(alpha: float) -> bytes:
        return converter_of(function, tf.TensorSpec((1, 1, 2, 5)), alpha).convert()

    with pytest.raises(ConversionError, match="may be negative"):
        convert(-1.0)
    x = np.random.default_rng(0).standard_normal((1, 1, 2, 5)).astype(np.float32) * np.float32(1e-4)
    for runtime in runtimes(convert(1.0)):
        np.testing.assert_allclose(invoke(runtime, [x])[0], function(x, 1.0).numpy(), rtol=1e-5)


@pytest.mark.parametrize("type_", [tf.int32, tf.int64])
@pytest.mark.parametrize("spec", [None, [None]])
def test_gradients_of_shapes_of_any_rank(type_: Any, spec: Any) -> None:
    def function(s0: Any, s1: Any) -> Any:
        return tf.raw_ops.BroadcastGradientArgs(s0=s0, s1=s1)

    content = converter_of(function, *[tf.TensorSpec(spec, type_)] * 2).convert()
    for shapes in (([2, 4, 1, 3],) * 2, ([2, 4, 1, 3], [2, 1, 1, 3]), ([1, 3], [3]), ([3], [5, 1]), ([1], [1, 1])):
        values = [np.array(shape, type_.as_numpy_dtype) for shape in shapes]
        for runtime in runtimes(content):
            for got, wanted in zip(invoke(runtime, values), function(*values), strict=True):
                np.testing.assert_array_equal(got, wanted.numpy(), str(shapes))


@pytest.mark.parametrize("is_constant", [True, False])
def test_convolutions_of_groups_in_three_dimensions(is_constant: bool) -> None:
    """TensorFlow computes them on the CPU only by XLA; a convolution of each group is what they mean."""
    rng = np.random.default_rng(0)
    x, filters = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 5, 4, 6), (2, 2, 2, 2, 9)))

    def function(x: Any, w: Any) -> Any:
        return tf.nn.conv3d(x, filters if is_constant else w, (1, 1, 2, 1, 1), "SAME")

    specs = [tf.TensorSpec((None, *x.shape[1:])), tf.TensorSpec(filters.shape)]
    content = converter_of(function, *specs).convert()
    parts = zip(np.split(x, 3, -1), np.split(filters, 3, -1), strict=True)
    wanted = np.concatenate([tf.nn.conv3d(*part, (1, 1, 2, 1, 1), "SAME") for part in parts], -1)
    for runtime in runtimes(content):
        np.testing.assert_allclose(invoke(runtime, [x, filters])[0], wanted, atol=2e-5)

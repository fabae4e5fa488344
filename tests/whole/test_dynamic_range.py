"""``dynamic_range``: activations that meet integer weights, as LiteRT's default kernels or as its reference's."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

import litecl
from litecl.cases import Case, hybrid
from litecl.cli import main
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.native import compiler, pack
from litecl.interpreter import Interpreter
from litecl.interpreter.arithmetic.hybrid import RowKind, quantize
from litecl.interpreter.dynamic_range import quantized_as
from litecl.interpreter.errors import ArgumentError, DelegateError, KernelBuildError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Quantization
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.perf.feeds import run_on
from support import compare, devices, loop_models, oracle, shared
from support.all_cases import content, expected
from support.dynamic_range import error, feeds_of, on_xnnpack, with_float_weights

_EXACT = 1e-6  # sums of the same integers, scaled; a single activation that is a step off shows
_PRODUCTS = (FULLY_CONNECTED, CONV_2D, BATCH_MATMUL)
_BOTH = [case for case in hybrid.CASES if case.op in _PRODUCTS]
_OTHERS = [case for case in hybrid.CASES if case.op not in _PRODUCTS]


def _conv(name: str, *, shared_by: int = 1, **options: Any) -> Case:
    """A convolution of single pixels, with other options. shared_by: the groups of channels."""
    (case,) = [case for case in _BOTH if case.name == "8 bits, 1x1, 16 to 33"]
    x, filters, bias = case.inputs
    assert x is not None and filters is not None and bias is not None
    count, depth = len(filters) // shared_by * shared_by, filters.shape[3] // shared_by
    scales = {1: replace(case.quantization[1], scale=case.quantization[1].scale[:count])}
    scales[1] = replace(scales[1], zero_point=scales[1].zero_point[:count])
    inputs = [x, np.ascontiguousarray(filters[:count, ..., :depth]), bias[:count]]
    return replace(case, name=name, inputs=inputs, quantization=scales, options=replace(case.options, **options))


_PIXELS = [
    _conv("1x1, stride 2", stride_h=2, stride_w=2),
    _conv("1x1, stride 2 down", stride_h=2),
    _conv("1x1, dilated", dilation_h_factor=2, dilation_w_factor=3),
    _conv("1x1, groups", shared_by=2),
]
_NAMES = ("8 bits, 9 x 16 to 33", "8 bits, 5 of one row", "4 bits", "4 bits, blocks, rows", "8 bits, 1x1, 16 to 33")
# A few on every device; test_capabilities.py has all fusions, and random graphs a mode.
_SOME = [*(case for case in _BOTH if case.name in _NAMES or case.op is BATCH_MATMUL), *_PIXELS[:1]]


def _run(model: Model | bytes, feeds: Sequence[Array], **options: Any) -> tuple[list[Array], Interpreter]:
    interpreter = Interpreter(model, **options)
    return run_on(interpreter, feeds), interpreter


def _differs(got: Sequence[Array], wanted: Sequence[Array], tolerance: float) -> str:
    try:
        for a, b in zip(got, wanted, strict=True):
            compare.assert_close(a, b, tolerance)
    except AssertionError as apart:
        return str(apart)
    return ""


def test_asymmetric_is_xnnpack() -> None:
    """Rows, images and pixels, of 8, 4 and 2 bits, halves included; the reference is not."""
    wrong, told_apart = {}, 0
    for case in [*_BOTH, *_PIXELS]:
        theirs = oracle.run(content(case), case.feeds, OpResolverType.AUTO)
        wrong[case.name] = _differs(_run(content(case), case.feeds, dynamic_range="asymmetric")[0], theirs, _EXACT)
        told_apart += bool(_differs(_run(content(case), case.feeds)[0], theirs, 1e-3))
    assert {name: what for name, what in wrong.items() if what} == {}
    assert told_apart > len(wrong) // 2


def test_reference_is_the_default_of_the_interpreter() -> None:
    for case in _BOTH:
        for options in ({}, {"dynamic_range": "reference"}):
            assert not _differs(_run(content(case), case.feeds, **options)[0], expected(case), 1e-5), case.name


def test_other_operators_have_one_mode() -> None:
    """XNNPACK has no such kernels for them."""
    for case in _OTHERS:
        model = read(content(case))
        assert quantized_as(model, "asymmetric") is model


@devices.on_each
def test_devices_are_the_interpreter(device: Any) -> None:
    """The same steps, with and without a vector's worth of rows, and all that is left to the CPU."""
    wrong = {}
    for case in _SOME:
        delegate = CLDelegate(device, num_threads=2, strict=True)
        got, interpreter = _run(content(case), case.feeds, delegates=[delegate])
        wanted, _ = _run(content(case), case.feeds, dynamic_range="asymmetric")
        wrong[case.name] = _differs(got, wanted, _EXACT)
        assert DelegationReport.of(interpreter).dynamic_range == "asymmetric"
        assert "as by XNNPACK" in str(DelegationReport.of(interpreter))
    assert {name: what for name, what in wrong.items() if what} == {}


def test_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    options = devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "dynamic range")
    for case in _SOME[::2]:
        got, _ = _run(content(case), case.feeds, delegates=[CLDelegate(**options, strict=True)])
        wanted, _ = _run(content(case), case.feeds, dynamic_range="asymmetric")
        assert not _differs(got, wanted, compare.DEVICE["float32"]), case.name


def test_nodes_left_to_the_cpu() -> None:
    """A delegate's mode holds for the whole model."""
    case = _BOTH[0]
    got, interpreter = _run(content(case), case.feeds, delegates=[CLDelegate(deny_ops=[case.op.name])])
    assert not DelegationReport.of(interpreter).claimed
    np.testing.assert_array_equal(got[0], _run(content(case), case.feeds, dynamic_range="asymmetric")[0][0])


def test_a_cache_has_both(tmp_path: Path) -> None:
    """Programs of one mode are not taken for those of the other."""
    for mode in ("asymmetric", "reference") * 2:
        for case in _BOTH[:2]:
            delegate = CLDelegate(cache_dir=tmp_path, dynamic_range=mode)
            got, _ = _run(content(case), case.feeds, delegates=[delegate])
            assert not _differs(got, _run(content(case), case.feeds, dynamic_range=mode)[0], _EXACT)


@pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
def test_a_pack_is_for_one_mode(tmp_path: Path) -> None:
    """Its libraries compute no numbers of the other."""
    (case,) = [case for case in _BOTH if case.name == "8 bits, 9 x 16 to 33"]
    path, made = tmp_path / "rows.tflite", tmp_path / "rows.pack"
    path.write_bytes(content(case))
    assert main([*map(str, ("compile", path, "--for", "host", "-o", made, "--threads", 1, "--json"))]) == 0
    assert pack.read(made).dynamic_range == "asymmetric"
    delegate = CLDelegate(programs=made, strict=True, num_threads=1)
    got, _ = _run(content(case), case.feeds, delegates=[delegate])
    assert not _differs(got, _run(content(case), case.feeds, dynamic_range="asymmetric")[0], _EXACT)
    with pytest.raises(KernelBuildError, match=r"no library for this region.*with dynamic_range='asymmetric'"):
        _run(content(case), case.feeds, delegates=[replace(delegate, dynamic_range="reference")])


_MOST = float(np.finfo(np.float32).max)
_STRANGE = np.array(
    [
        [-_MOST, _MOST, 1, 0],  # a length that is no float
        [0, _MOST, 1, -1],
        [1e-38, -1e-38, 0, 1e-39],  # too short to divide by
        [1e-36, -1e-37, 0, 5e-37],
        [3, 3, 3, 3],
        [0, 0, 0, -0.0],
        [-1e-3, -2e-3, -3e-3, -4e-3],
        [np.inf, 1, 0, 0],
        [-np.inf, 1, 0, 0],
        [np.nan, 1, 0, 0],
    ]
    * 5,
    np.float32,
)


@devices.on_each
@pytest.mark.parametrize("rows", [7, 33])
def test_strange_rows(rows: int, device: Any) -> None:
    """Lengths at the limits of floats, beside rows that have none, are LiteRT's; none spoils the rows beside it."""
    (case,) = [case for case in hybrid.CASES if case.name == "8 bits, 1 x 1 to 16"]
    weights = np.random.default_rng(3).integers(-127, 128, (16, 4)).astype(np.int8)
    x = np.roll(_STRANGE, -rows, axis=0)[:rows]
    case = replace(case, inputs=[x, weights, case.inputs[2]])
    got, _ = _run(content(case), [x], delegates=[CLDelegate(device, strict=True)])
    wanted, _ = _run(content(case), [x], dynamic_range="asymmetric")
    finite = np.isfinite(x).all(axis=1)
    for a, b in zip(got[0][finite], wanted[0][finite], strict=True):
        compare.assert_close(a, b, compare.DEVICE["float32"])
    assert not np.isfinite(got[0][~finite]).any()


@pytest.mark.parametrize("device", [None, "native"])
def test_rows_have_litert_s_scales(device: str | None) -> None:
    """To the last bit: weights of 1 leave the quantized activations as they are."""
    random = np.random.default_rng(8)
    x = (random.standard_normal((500, 4)) * np.exp(random.uniform(-20, 20, (500, 1)))).astype(np.float32)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=True)
    ones = Quantization(np.ones(1, np.float32), np.zeros(1, np.int64))
    inputs = [x, np.eye(4, dtype=np.int8), np.zeros(4, np.float32)]
    case = Case("rows", FULLY_CONNECTED, options, inputs, frozenset({1, 2}), quantization={1: ones}, version=9)
    delegates = [] if device is None else [CLDelegate(device=device, strict=True, dynamic_range="reference")]
    interpreter = Interpreter(model_content=(file := write(case.model())), delegates=delegates)
    (got,) = run_on(interpreter, [x])
    assert np.array_equal(got, *oracle.run(file, [x]))


def test_rows_use_all_steps() -> None:
    """The ends of a range are the ends of the bytes, and zero is exact: the error is half a step at most."""
    x = np.random.default_rng(4).uniform(-1, 3, (64, 40)).astype(np.float32)
    integers, scale = quantize(x, RowKind.NEAREST)
    assert (np.abs(integers * scale - x) <= scale * np.float32(1.001)).all()
    assert ((np.ptp(integers, axis=1) >= 254) & (np.ptp(integers, axis=1) <= 255)).all()
    np.testing.assert_allclose(scale[:, 0], np.ptp(x, axis=1) / 255, rtol=1e-6)


def test_bodies_of_loops() -> None:
    """Products in a loop's body, on the device and on the CPU, have the mode too."""
    model, feeds = loop_models.with_integer_weights()
    wanted, _ = _run(model, feeds, dynamic_range="asymmetric")
    plain, _ = _run(model, feeds)
    assert _differs(wanted, plain, 1e-4)
    compared = oracle.run(write(model), feeds)
    assert not _differs(plain, compared, 1e-5)
    got, interpreter = _run(model, feeds, delegates=[CLDelegate(strict=True)])
    assert all(row.claimed for row in DelegationReport.of(interpreter).nodes)
    assert not _differs(got, wanted, _EXACT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamic_range": "symmetric"}, "expected 'reference' or 'asymmetric', got 'symmetric'"),
        ({"dynamic_range": "reference", "delegates": [CLDelegate()]}, "give it to the delegate alone"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Interpreter(content(_BOTH[0]), **options)
    with pytest.raises(DelegateError, match="expected 'reference' or 'asymmetric'"):
        CLDelegate(dynamic_range="both")  # type: ignore[arg-type]


def test_in_place_of_litert_on_numpy() -> None:
    case = _BOTH[0]
    with litecl.install_as("ai_edge_litert", cpu=True, dynamic_range="asymmetric"):
        from ai_edge_litert.interpreter import Interpreter as Ours

        made = Ours(model_content=content(case))
        reference = Ours(model_content=content(case), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    for interpreter, mode in ((made, "asymmetric"), (reference, "reference")):
        got = run_on(interpreter, case.feeds)
        np.testing.assert_array_equal(got[0], _run(content(case), case.feeds, dynamic_range=mode)[0][0])


def test_the_file_stays_as_it_was() -> None:
    """A mode is nothing that a file says, for convolutions: the schema has no field for it."""
    (case,) = [case for case in _BOTH if case.name == "8 bits, one scale" and case.op is CONV_2D]
    model = read(content(case))
    assert write(quantized_as(model, "asymmetric")) == write(model)


_REAL = ("mlcommons-tiny/kws_ref_model_float32", "mlcommons-tiny/model_ToyCar_quant", "breizhn-DTLN/model_quant_1")


@shared.needs_shared
@pytest.mark.parametrize("name", _REAL)
def test_error_of_real_models(name: str) -> None:
    """As near to float weights' model as LiteRT's default kernels are, and nearer than its reference kernels."""
    model = (shared.MODELS / f"{name}.tflite").read_bytes()
    feeds = feeds_of(model)
    exact = Interpreter(with_float_weights(read(model)))
    ours = error(Interpreter(model, delegates=[CLDelegate()]), exact, feeds)
    reference = error(Interpreter(model, delegates=[CLDelegate(dynamic_range="reference")]), exact, feeds)
    # Sums in another order round some activations to the next integer.
    assert ours <= 1.02 * error(on_xnnpack(model), exact, feeds)
    assert ours < 0.9 * reference

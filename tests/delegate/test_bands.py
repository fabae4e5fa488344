"""Convolutions that run in bands of rows, with intermediate results in a cache: the same results in less memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cpu import schedules
from litecl.delegate.plan.passes import bands
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.schema import ActivationFunctionType as A
from litecl.interpreter.schema import Padding
from litecl.perf.feeds import run_on
from support import devices
from support.build import Graph, model, randn
from support.by_name import Fed, agrees

_ROWS = 14


@dataclass(frozen=True)
class Block:
    """A convolution, a depthwise and a 1x1 one of ``columns``, unless that is 0. image: its height, width and channels.
    first: side and stride of the first window. taps: of the depthwise one, height and width; strides: down and across.
    zeros: around the first result, at each side. added: whether the image is added to the result. bias: numbers, zeros
    (False) or none.
    """

    image: tuple[int, int, int] = (_ROWS, 10, 16)
    batch: int = 1
    first: tuple[int, int] = (1, 1)
    first_padding: Padding = Padding.SAME
    hidden: int = 48
    taps: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: Padding = Padding.SAME
    multiplier: int = 1
    zeros: tuple[int, int, int, int] | None = None
    columns: int = 16
    added: bool = False
    activations: tuple[A, A, A] = (A.RELU6, A.RELU6, A.NONE)
    bias: bool | None = True

    def built(self) -> Fed:
        """Return the model and its image."""
        r, g = np.random.default_rng(13), Graph()
        side, stride = self.first
        x = g.input((self.batch, *self.image))
        one, two, three = ({"fused_activation_function": a} for a in self.activations)
        y = self._convolved(
            g,
            r,
            CONV_2D,
            x,
            (self.hidden, side, side, self.image[2]),
            Conv2DOptions(self.first_padding, stride, stride, **one),
        )
        if self.zeros is not None:
            top, bottom, left, right = self.zeros
            y = g.op(PAD, [y, g.const(np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))], NoOptions())
        down, across = self.strides
        y = self._convolved(
            g,
            r,
            DEPTHWISE_CONV_2D,
            y,
            (1, *self.taps, self.hidden * self.multiplier),
            (
                DepthwiseConv2DOptions(
                    self.padding,
                    across,
                    down,
                    depth_multiplier=self.multiplier,
                    dilation_w_factor=self.dilations[1],
                    dilation_h_factor=self.dilations[0],
                    **two,
                )
            ),
        )
        if self.columns:
            columns = self.columns, 1, 1, self.hidden * self.multiplier
            y = self._convolved(g, r, CONV_2D, y, columns, Conv2DOptions(Padding.VALID, 1, 1, **three))
        if self.added:
            y = g.op(ADD, [x, y], AddOptions(A.NONE))
        return write(model(g.build(y))), [randn(r, self.batch, *self.image)]

    def _convolved(self, g: Graph, r: np.random.Generator, op: Any, x: int, filter_: Any, options: Any) -> int:
        channels = filter_[3] if op is DEPTHWISE_CONV_2D else filter_[0]
        values = randn(r, channels) if self.bias else np.zeros(channels, np.float32)
        bias = None if self.bias is None else g.const(values)
        return g.op(op, [x, g.const(randn(r, *filter_, scale=0.3)), bias], options)


BLOCKS = {
    "stride 1": Block(),
    "stride 2": Block(strides=(2, 2)),
    "an odd number of rows": Block((13, 11, 16), strides=(2, 2)),
    "strides that differ": Block(strides=(1, 2)),
    "more rows between windows than they have": Block((29, 9, 16), strides=(5, 1)),
    "5x5": Block(taps=(5, 5)),
    "5x5, stride 2": Block((13, 12, 16), taps=(5, 5), strides=(2, 2)),
    "taller than the image": Block((8, 12, 16), taps=(11, 3)),
    "a row of taps": Block(taps=(1, 3)),
    "a column of taps": Block(taps=(3, 1)),
    "apart": Block(dilations=(2, 2)),
    "apart, VALID": Block((15, 16, 16), taps=(3, 3), dilations=(3, 2), padding=Padding.VALID),
    "VALID": Block(padding=Padding.VALID),
    "VALID, stride 2, rows left over": Block((14, 12, 16), strides=(2, 2), padding=Padding.VALID),
    "zeros of its own": Block(zeros=(1, 2, 0, 1), padding=Padding.VALID, strides=(2, 2)),
    "3x3 of stride 2 first": Block((27, 24, 4), first=(3, 2)),
    "3x3 of stride 2 first, VALID": Block((28, 24, 4), first=(3, 2), first_padding=Padding.VALID),
    "1x1 of stride 2 first": Block((28, 20, 16), first=(1, 2)),
    "the image added": Block(added=True),
    "other activations": Block(activations=(A.RELU, A.RELU_N1_TO_1, A.RELU)),
    "no activations": Block(activations=(A.NONE, A.NONE, A.NONE)),
    "24 columns": Block((14, 8, 24), columns=24, added=True),
    "one row": Block((1, 12, 16)),
    "none after it": Block(columns=0),
    "none after it, stride 2, zeros": Block((13, 11, 16), zeros=(1, 2, 0, 1), strides=(2, 2), columns=0),
    "none after it, its input added": Block((14, 8, 48), columns=0, activations=(A.RELU6, A.NONE, A.NONE), added=True),
}
OTHERS = {
    "two images": Block(batch=2),
    "two columns for a channel": Block(multiplier=2),
    "zeros beyond the windows": Block(zeros=(4, 0, 0, 0), padding=Padding.VALID),
    "rows that end within a line": Block((14, 10, 3), hidden=5, columns=7),
    "one column of pixels": Block((14, 1, 16)),
    "3x3 of stride 1 first": Block(first=(3, 1)),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small images count as large ones, and bands be of few rows."""
    monkeypatch.setattr(bands, "_LEAST_BYTES", 0)
    monkeypatch.setattr(schedules, "BAND_BYTES", 3 * 4 * 10 * 48)


def opened(fed: Fed, delegate: CLDelegate, **options: Any) -> Interpreter:
    interpreter = Interpreter(fed[0], delegates=[delegate], **options)
    run_on(interpreter, [fed[1][0]])
    return interpreter


def launches(interpreter: Interpreter) -> int:
    return len(interpreter.delegation_report().kernels)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("threads", [1, 2])
def test_bands_agree(name: str, threads: int) -> None:
    fed, delegate = BLOCKS[name].built(), CLDelegate(device="native", num_threads=threads, strict=True, profile=True)
    agrees(fed, [delegate])
    assert launches(opened(fed, delegate)) > 3 or name == "one row"


@pytest.mark.opencl
@pytest.mark.parametrize("name", BLOCKS)
def test_bands_agree_by_opencl(name: str) -> None:
    agrees(BLOCKS[name].built(), [CLDelegate(device=devices.tested()[0], strict=True)])


@pytest.mark.parametrize("name", OTHERS)
def test_others_run_one_after_another(name: str) -> None:
    fed, delegate = OTHERS[name].built(), CLDelegate(device="native", num_threads=1, strict=True, profile=True)
    agrees(fed, [delegate])
    assert launches(opened(fed, delegate)) <= 4


@pytest.mark.parametrize("rows", [1, 2, 5, 1000])
def test_bands_of_any_height_agree(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A band of one row may see nothing that the band before has not seen."""
    monkeypatch.setattr(schedules, "BAND_BYTES", rows * 4 * 10 * 48)
    for name in (
        "stride 1",
        "5x5",
        "taller than the image",
        "zeros of its own",
        "more rows between windows than they have",
    ):
        agrees(BLOCKS[name].built(), [CLDelegate(device="native", num_threads=1, strict=True)])


def test_no_bias_is_a_bias_of_zeros() -> None:
    delegate = CLDelegate(device="native", num_threads=1, strict=True)
    zeros, none = Block(bias=False).built(), Block(bias=None).built()
    agrees(zeros, [delegate])
    outputs = [opened(fed, delegate) for fed in (zeros, none)]
    np.testing.assert_array_equal(*(run.get_tensor(run.get_output_details()[0]["index"]) for run in outputs))


def test_what_lies_between_takes_the_memory_of_two_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Block((64, 10, 16)).built()

    def arena_bytes() -> int:
        interpreter = opened(fed, CLDelegate(device="native", num_threads=1, strict=True))
        return interpreter.delegation_report().partitions[0].arena_bytes

    banded = arena_bytes()
    monkeypatch.setattr(bands, "_LEAST_BYTES", 1 << 40)
    whole = arena_bytes()
    assert banded < 0.4 * whole


def test_tensors_that_are_to_be_seen_are_computed_whole() -> None:
    fed = Block().built()
    expected: dict[str, Array] = {}
    for delegates in ([], [CLDelegate(device="native", num_threads=1)]):
        interpreter = Interpreter(fed[0], delegates=delegates, experimental_preserve_all_tensors=True)
        run_on(interpreter, [fed[1][0]])
        for detail in interpreter.get_tensor_details():
            if detail["name"].startswith(("CONV", "DEPTH")):
                got = interpreter.get_tensor(detail["index"])
                np.testing.assert_allclose(got, expected.setdefault(detail["name"], got), rtol=1e-4, atol=1e-4)
    assert len(expected) == 3

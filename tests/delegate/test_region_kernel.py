"""A region as one kernel: it computes what its launches compute by themselves, which take over where it cannot be."""

import time
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate import devices as open_devices
from litecl.delegate.cl_op import Launch, Operand
from litecl.delegate.opencl.devices import programs
from litecl.delegate.opencl.devices.device import devices
from litecl.delegate.opencl.environment import POCL
from litecl.delegate.plan.region_program import region_program
from litecl.delegate.plan.region_tables import Control, Entry
from litecl.delegate.plan.steps import Loop, Work
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import EXP, LOGISTIC
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(23)


def network() -> Model:
    """Return operators that exchange data between workers: rows become columns, and sums are over all results."""
    g = Graph()
    x = g.input((1, 16, 16, 8))
    filters = [g.const(randn(RNG, 24, 3, 3, 8, scale=0.1)), g.const(randn(RNG, 24))]
    image = g.op(CONV_2D, [x, *filters], Conv2DOptions(stride_w=1, stride_h=1))
    turned = g.op(TRANSPOSE, [image, g.const(np.array([0, 3, 1, 2], np.int32))], NoOptions())
    grown = g.op(EXP, [g.op(LOGISTIC, [turned], NoOptions())], NoOptions())
    dense = g.op(FULLY_CONNECTED, [grown, g.const(randn(RNG, 40, 256, scale=0.1)), None], FullyConnectedOptions())
    return model(g.build(g.op(SOFTMAX, [dense], SoftmaxOptions(beta=1.0))))


def run(model_: Model, x: Array, **options: Any) -> tuple[list[Array], Interpreter]:
    """The outputs of three invokes in a row, and who computed them."""
    interpreter = Interpreter(model_, delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    outputs = []
    for scale in (1.0, 0.5, -1.0):
        interpreter.set_tensor(0, np.float32(scale) * x)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return outputs, interpreter


CPUS = [device for device in devices() if device.type == cl.device_type.CPU]


@pytest.mark.nightly
@pytest.mark.parametrize("device", CPUS, ids=lambda device: device.name)
def test_one_kernel_equals_its_launches(device: Any) -> None:
    model_, x = network(), randn(RNG, 1, 16, 16, 8)
    together, interpreter = run(model_, x, device=device, strict=True)
    alone, queued = run(model_, x, device=device, queue_loops=True)
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    assert interpreter.delegation_report().counters.kernel_launches == 1
    assert queued.delegation_report().counters.kernel_launches > 1
    assert interpreter.delegation_report().counters.host_syncs == 1


@pytest.mark.nightly
@pytest.mark.long
def test_a_compiler_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """PoCL's prints on a user's terminal how many warnings there are."""
    if POCL not in CPUS[-1].platform.name:
        pytest.skip("other compilers say that they have begun, and ended")
    compile_, unseen = cl.Program.compile, f"-DLITECL_SEEN_{time.monotonic_ns()}"  # by the driver's cache
    said: list[str] = []

    def compiled(program: Any, options: list[str], devices: list[Any]) -> Any:
        found = compile_(program, [*options, unseen], devices)
        said.append(found.get_build_info(devices[0], cl.program_build_info.LOG).strip())
        return found

    monkeypatch.setattr(cl.Program, "compile", compiled)
    monkeypatch.setattr(open_devices, "_DEVICES", {})  # those that are open may have compiled it
    run(network(), randn(RNG, 1, 16, 16, 8), device=CPUS[-1], strict=True, cache_dir=None)
    assert said and not any(said)
    assert capfd.readouterr().err == ""


@pytest.mark.opencl
def test_launches_take_over_where_linking_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    model_, x = network(), randn(RNG, 1, 16, 16, 8)
    expected, _ = run(model_, x)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise KernelBuildError("no linker")

    monkeypatch.setattr(programs.Programs, "region_kernel", refuse)
    outputs, interpreter = run(model_, x)
    for a, b in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    report = interpreter.delegation_report()
    assert report.counters.kernel_launches > 1
    assert report.claimed == len(report.nodes)
    assert not report.failures


def launch(entry: str, *args: Any, **defines: str) -> Work:
    """A launch of three by two work-items."""
    return Work(0, Launch("unary", entry, args, (3, 2), (1, 1), defines))


def test_a_function_is_named_once_and_its_work_every_time() -> None:
    first = launch("unary", np.int32(7), np.float32(0.5), OP="EXP")
    program = region_program([first, launch("unary", np.int32(8), np.float32(1), OP="LOG"), first], lambda arg: 0)
    assert program is not None
    assert len(program.functions) == len(program.variants) == 2
    launches = [(entry.code, entry.size_0, entry.size_1, entry.size_2, entry.first_arg) for entry in program.works]
    assert launches == [(0, 3, 2, 1, 0), (1, 3, 2, 1, 2), (0, 3, 2, 1, 4)]
    assert program.args.tolist() == [7, 0x3F000000, 8, 0x3F800000, 7, 0x3F000000]


def test_a_loop_is_its_body_with_the_condition_behind_it() -> None:
    """Counted loops have no condition, except those that exceed a counter."""
    condition, body = launch("unary", OP="NEG"), launch("unary", OP="EXP")
    holds = Operand(TensorSpec(TensorType.BOOL, ()))
    works = [Entry(function, 3, 2, 1) for function in (0, 1)]
    start, count, swap = Entry(Control.START), Entry(Control.COUNT, times=2**31 - 1), Entry(Control.SWAP)
    counted = [Entry(Control.BLOCK, to=6), start, count, works[0], swap, Entry(Control.REPEAT, to=2, times=5)]
    never = [Entry(Control.BLOCK, to=2), start]
    ahead, back = Entry(Control.JUMP, to=4), Entry(Control.WHILE, to=2)
    tested = [Entry(Control.BLOCK, to=6), ahead, works[0], swap, works[1], back]
    expected = {5: counted, 0: never, None: tested, 2**40: tested}
    for trips, entries in expected.items():
        loop = Loop(0, 0, [condition], holds, [body], swapped=[(holds, holds)], trips=trips)
        program = region_program([loop], lambda arg: 0)
        assert program is not None
        assert list(program.works) == entries


def test_a_parameter_that_cannot_be_passed_is_refused() -> None:
    assert region_program([launch("unary", np.complex64(1))], lambda arg: 0) is None

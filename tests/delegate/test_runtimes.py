"""Which of several OpenCL runtimes for one processor is taken."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate.analysis.cost import mostly_integers
from litecl.delegate.opencl import device, runtimes
from litecl.delegate.opencl.capabilities import Capabilities
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError
from litecl.perf.measure.peer_models import products
from litecl.perf.measure.tuning import _in_int8

POCL = "Portable Computing Language"


@dataclass(frozen=True)
class Found:
    """As much of a pyopencl device as is asked for. able: what its compiler can do, None if it builds nothing."""

    name: str
    platform: Any
    able: Capabilities | None
    max_compute_units: int = 4
    type: int = cl.device_type.CPU
    native_vector_width_float: int = 16
    host_unified_memory: bool = True
    version: str = "OpenCL 1.2 litecl"  # without memory that is shared, so without helpers


def capabilities(found: Found, directory: Path | None) -> Capabilities:
    if found.able is None:
        raise KernelBuildError("nothing builds")
    return found.able


@dataclass(frozen=True)
class Platform:
    name: str
    version: str = ""


def runtime(platform: Platform, macros: str | None, *names: str) -> list[Found]:
    able = None if macros is None else Capabilities(frozenset(macros.split()))
    return [Found(name, platform, able, 1 if name.startswith(("basic", "cpu-minimal")) else 4) for name in names]


OLD = runtime(Platform(POCL, "3.0"), "__AVX__", "basic-x", "pthread-x")
NAMED = runtime(Platform(POCL, "3.0"), "__AVX__ __AVX512F__ __AVX512VNNI__", "basic-x", "pthread-x")
NEW = runtime(Platform(POCL, "7.1"), "__AVX__ __AVX512F__", "cpu-minimal-x", "cpu-x")
INTEL = runtime(Platform("Intel(R) OpenCL"), "", "AMD EPYC")
BROKEN = runtime(Platform(POCL, "3.0"), None, "basic-x", "pthread-x")


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        (OLD, NEW, NEW),  # wider vectors
        (OLD, INTEL, INTEL),
        (NAMED, NEW, NAMED),  # dot products of bytes
        (NAMED, INTEL, NAMED),
        (NEW, INTEL, NEW),  # compiles sooner
        (BROKEN, INTEL, INTEL),
    ],
    ids=lambda found: f"{found[0].platform.name[:5]} {found[0].platform.version}",
)
def test_the_most_able_compiler(
    first: list[Found], second: list[Found], taken: list[Found], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "capabilities", capabilities)
    monkeypatch.setattr(device, "needs_threads", lambda found: found.max_compute_units > 1)
    for found in (first + second, second + first):
        assert runtimes.preferred(found, Demand(), lambda _: Tuning(), None) == taken
        monkeypatch.setattr(device, "devices", lambda found=found: found)
        small, large = (next(device.candidates(Demand(flops=flops), lambda _: Tuning())).device for flops in (0, 1e12))
        assert large == taken[-1]
        one = next(device.candidates(Demand(num_threads=1, flops=1e12), lambda _: Tuning())).device
        able = [each for each in (*taken, *found) if each.max_compute_units == 1 and each.able is not None]
        assert small == one == (able[0] if able else taken[0])


def test_the_fastest_if_all_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "capabilities", capabilities)
    speeds = {"pthread-x": (1e9, 3e9), "AMD EPYC": (2e9, 2e9)}

    def tuned(found: Found) -> Tuning:
        floats, integers = speeds.get(found.name, (0, 0))
        return Tuning(float_speed=floats, integer_speed=integers)

    floats, integers = Demand(), Demand(integers=True)
    assert runtimes.preferred(NAMED + INTEL, floats, tuned, None) == INTEL
    assert runtimes.preferred(INTEL + NAMED, integers, tuned, None) == NAMED
    assert runtimes.preferred(NAMED + INTEL + NEW, floats, tuned, None) == NAMED  # one was not
    assert runtimes.preferred(NAMED, floats, tuned, None) == NAMED


def test_models_of_integers() -> None:
    floats = products(4, 8, 1)
    for content, integers in ((floats, False), (_in_int8(floats), True)):
        interpreter = Interpreter(content)
        interpreter.allocate_tensors()
        assert mostly_integers(interpreter.model, interpreter._specs) == integers


@pytest.mark.parametrize("platform", [INTEL[0].platform, NAMED[0].platform], ids=["its own platform", "PoCL's"])
def test_a_gpu_comes_first(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And has no helpers, though PoCL may show it beside a device that runs kernels in the calling thread."""
    svm = "OpenCL 3.0 litecl"
    facts = {"host_unified_memory": False, "max_compute_units": 8, "platform": platform, "version": svm}
    gpu = SimpleNamespace(name="GeForce", type=cl.device_type.GPU, **facts)
    monkeypatch.setattr(device, "_has_fine_grained_svm", lambda found: True)
    monkeypatch.setattr(device, "devices", lambda: [*NAMED, *INTEL, gpu])
    for num_threads in (None, 4):
        assert next(device.candidates(Demand(num_threads), lambda _: Tuning())) == device.Choice(gpu)


def test_of_gpus_one_with_memory_of_its_own_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is in the list; then the one with the host's, then a processor."""
    facts = {"type": cl.device_type.GPU, "max_compute_units": 8, "version": "OpenCL 3.0"}
    own, shared = (
        SimpleNamespace(name=name, platform=name, host_unified_memory=unified, **facts)
        for name, unified in (("Arc", False), ("Iris", True))
    )
    monkeypatch.setattr(device, "_has_fine_grained_svm", lambda found: False)
    for listed in ([shared, own, *INTEL], [own, *INTEL, shared]):
        monkeypatch.setattr(device, "devices", lambda listed=listed: [*listed])
        tried = [choice.device for choice in device.candidates(Demand(), lambda _: Tuning())]
        assert tried == [own, shared, *INTEL]

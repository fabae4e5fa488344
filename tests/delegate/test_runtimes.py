"""Which of several OpenCL runtimes for one processor is taken."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate.analysis.cost import mostly_integers
from litecl.delegate.opencl.devices import device, runtimes
from litecl.delegate.opencl.probes.capabilities import Capabilities
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.perf.models.layers import products
from litecl.perf.tuning import _in_int8

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
        small, large = (next(device.processors(found, Demand(flops=flops), lambda _: Tuning())) for flops in (0, 1e12))
        assert large == taken[-1]
        one = next(device.processors(found, Demand(num_threads=1, flops=1e12), lambda _: Tuning()))
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


def test_of_gpus_one_with_memory_of_its_own_comes_first() -> None:
    """Wherever it is in the list."""
    facts = {"type": cl.device_type.GPU, "max_compute_units": 8, "version": "OpenCL 3.0"}
    own, shared = (
        SimpleNamespace(name=name, platform=name, host_unified_memory=unified, **facts)
        for name, unified in (("Arc", False), ("Iris", True))
    )
    for listed in ([shared, own], [own, shared]):
        assert device.gpus(listed) == [own, shared]


def test_other_runtimes_are_tried_in_turn() -> None:
    assert [*device.processors(INTEL, Demand(), lambda _: Tuning())] == INTEL
    with pytest.raises(DelegateError, match="no OpenCL device"):
        next(device.processors([], Demand(), lambda _: Tuning()))

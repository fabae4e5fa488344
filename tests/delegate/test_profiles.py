"""Plans for GPUs fit them, and their drivers' properties are understood."""

import re
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl import kernels_cl
from litecl.cases.tables import TABLES
from litecl.delegate import CLDelegate
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.opencl.devices.device import gpus
from litecl.delegate.opencl.probes import gpu
from litecl.delegate.opencl.probes.gpu import gpu_of
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from support.attention_nets import Attended
from support.build import model
from support.planned_gpu import GPUS, PlannedGpu

_CASES = [table.CASES[0] for table in TABLES]


def planned(name: str, content: Any) -> PlannedGpu:
    """Return a GPU for which a model was planned."""
    device = PlannedGpu(name)
    Interpreter(content, delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    return device


@pytest.mark.parametrize("name", GPUS)
def test_plans_fit(name: str) -> None:
    """Groups are no larger than the GPU allows, and cover all items."""
    launches = [work.launch for case in _CASES for plan in planned(name, case.model()).plans for work in plan.works]
    assert len(launches) > len(_CASES) // 2
    assert all(prod(launch.local_size) <= GPUS[name].max_work_group_size for launch in launches)
    sizes = [zip(launch.global_size, launch.local_size, strict=True) for launch in launches]
    assert all(whole % part == 0 for pairs in sizes for whole, part in pairs)


def test_launches_that_are_apart_know_nothing_of_their_group() -> None:
    """Kernels with barriers, or that ask for their place in a group, are not for another group to run."""
    launches = [work.launch for case in _CASES for plan in planned("nvidia", case.model()).plans for work in plan.works]
    for launch in launches:
        text = (Path(kernels_cl.__file__).parent / f"{launch.kernel}.cl").read_text()
        in_groups = re.search(r"\bbarrier\(|get_local_|get_group_id|LOCAL_ITEM|local_tile\.h", text) is not None
        assert launch.apart == (not in_groups), launch.kernel
    assert {launch.apart for launch in launches} == {True, False}


def attention() -> bytes:
    """Attention of 12 heads over 128 words, with a scale and a mask."""
    g, words = Attended(), (1, 12, 128, 64)
    scores = g.masked(g.scaled(g.scores(words, words), 0.125), (1, 1, 128, 128))
    return write(model(g.build(g.seen(scores, words))))


@pytest.mark.parametrize("name", GPUS)
def test_attention_is_one_launch(name: str) -> None:
    """It keeps more than half of the places for groups busy."""
    device = PlannedGpu(name)
    Interpreter(model_content=attention(), delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    (work,) = device.plans[0].works
    assert 2 * prod(work.launch.global_size) // prod(work.launch.local_size) >= GPUS[name].cores


def _device(vendor: str, *, shared: bool = False, **more: Any) -> SimpleNamespace:
    given = {"name": "", "extensions": "cl_khr_fp16 cl_khr_integer_dot_product", "type": cl.device_type.GPU}
    return SimpleNamespace(vendor=vendor, host_unified_memory=shared, **{**given, **more})


@pytest.mark.parametrize(
    ("device", "found"),
    [
        (
            _device("NVIDIA Corporation", extensions="", warp_size_nv=32, compute_capability_major_nv=9),
            Gpu("nvidia", 32),
        ),
        (
            _device("Advanced Micro Devices, Inc.", name="amd", wavefront_width_amd=32),
            Gpu("amd", 32),
        ),
        (_device("Intel(R) Corporation", shared=True), Gpu("intel", 8, integrated=True)),
        (_device("ARM"), Gpu("arm", 16)),
        (_device("Mesa", extensions=""), Gpu()),
    ],
    ids=lambda value: getattr(value, "vendor", None),
)
def test_what_a_driver_tells(device: Any, found: Gpu) -> None:
    """A driver's values become properties; a value that it doesn't report is absent."""
    assert gpu_of(device) == found


@pytest.mark.parametrize(("fewest", "macros"), [(8, {}), (16, {"LITECL_SUBGROUP": 16})])
def test_intels_lockstep(fewest: int, macros: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """If 16 work-items are the fewest that a compiler may choose, a macro makes it choose 16."""

    def told(device: Any, name: int, room: Any, sizes: Any, size: Any) -> int:
        sizes[0], sizes[1], size._obj.value = fewest, 32, 16
        return 0

    monkeypatch.setattr(gpu, "_device_info", told)
    found = gpu_of(_device("Intel", extensions="cl_intel_required_subgroup_size", int_ptr=1))
    assert (found.subgroup, found.macros) == (fewest, {"LITECL_FEW_REGISTERS": 1, **macros})


def test_a_gpu_with_memory_of_its_own_comes_first() -> None:
    """Whatever the order in which they are listed."""
    found = [_device("Intel", shared=True), _device("AMD")]
    assert gpus(found) == gpus(found[::-1]) == found[::-1]

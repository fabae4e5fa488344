"""GPUs that are not there: what is planned for each fits it, and nothing runs."""

import json
import re
import subprocess
import sys
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl import kernels_cl
from litecl.cases.tables import TABLES
from litecl.delegate import CLDelegate
from litecl.delegate.backend.absent import AbsentDevice
from litecl.delegate.gpu.block_groups import MOST_AGAIN
from litecl.delegate.gpu.profiles import PROFILES
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.opencl.devices.device import gpus
from litecl.delegate.opencl.probes import gpu
from litecl.delegate.opencl.probes.gpu import gpu_of
from litecl.delegate.plan.gpu.estimate import launch_rows
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write, write_file
from litecl.interpreter.graph import ABSENT, Model
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from support.attention_nets import Attended
from support.build import Graph, model, randn

_WITHOUT_PYOPENCL = """
import sys
sys.modules["pyopencl"] = None
from litecl.cli import main
sys.exit(main(sys.argv[1:]))
"""
_CASES = [table.CASES[0] for table in TABLES]


def planned(name: str, content: Any) -> AbsentDevice:
    """Return a GPU for which a model was planned."""
    device = AbsentDevice(name)
    Interpreter(content, delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    return device


@pytest.mark.parametrize("name", PROFILES)
def test_plans_fit(name: str) -> None:
    """Groups are no larger than the GPU allows, and cover what they are to cover."""
    profile = PROFILES[name]
    launches = [work.launch for case in _CASES for plan in planned(name, case.model()).plans for work in plan.works]
    assert len(launches) > len(_CASES) // 2
    assert all(prod(launch.local_size) <= profile.max_work_group_size for launch in launches)
    sizes = [zip(launch.global_size, launch.local_size, strict=True) for launch in launches]
    assert all(whole % part == 0 for pairs in sizes for whole, part in pairs)


def test_launches_that_are_apart_know_nothing_of_their_group() -> None:
    """Kernels with barriers, or that ask for their place in a group, are not for another group to run."""
    launches = [work.launch for case in _CASES for plan in planned("sm_90", case.model()).plans for work in plan.works]
    for launch in launches:
        text = (Path(kernels_cl.__file__).parent / f"{launch.kernel}.cl").read_text()
        in_groups = re.search(r"\bbarrier\(|get_local_|get_group_id|LOCAL_ITEM|local_tile\.h", text) is not None
        assert launch.apart == (not in_groups), launch.kernel
    assert {launch.apart for launch in launches} == {True, False}


def dense() -> Model:
    """Softmax of 512 x 4096 times 4096 x 1024."""
    g = Graph()
    weights = g.const(randn(np.random.default_rng(1), 1024, 4096))
    y = g.op(FULLY_CONNECTED, [g.input((512, 4096)), weights, ABSENT], FullyConnectedOptions())
    return model(g.build(g.op(SOFTMAX, [y], SoftmaxOptions(1.0))))


def test_estimates_are_of_the_gpus_peaks() -> None:
    """Arithmetic bounds a large product, memory a softmax; each array counts once."""
    rows = launch_rows(planned("sm_90", dense()).plans, PROFILES["sm_90"])
    product, softmax = rows[0], rows[-1]
    assert (product.flops, product.bound) == (2 * 512 * 1024 * 4096, "arithmetic")
    assert product.roofline_us == pytest.approx(2 * 512 * 1024 * 4096 / 66.9e12 * 1e6)
    assert (softmax.entry, softmax.bound, softmax.bytes) == ("softmax_local", "memory", 2 * 4 * 512 * 1024)
    assert softmax.roofline_us == pytest.approx((2 * 4 * 512 * 1024) / 3350e9 * 1e6)
    assert all(row.groups * row.group == row.work_items for row in rows)


def attention() -> bytes:
    """Attention of 12 heads over 128 words, with a scale and a mask."""
    g, words = Attended(), (1, 12, 128, 64)
    scores = g.masked(g.scaled(g.scores(words, words), 0.125), (1, 1, 128, 128))
    return write(model(g.build(g.seen(scores, words))))


@pytest.mark.parametrize("name", PROFILES)
def test_attention_is_one_launch(name: str) -> None:
    """It keeps more than half of the places for groups busy."""
    device = AbsentDevice(name)
    Interpreter(model_content=attention(), delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    (row,) = launch_rows(device.plans, device.profile)
    assert 2 * row.groups >= device.profile.cores


@pytest.mark.parametrize("name", PROFILES)
def test_what_is_computed_again_takes_less_than_a_launch(name: str) -> None:
    """Tiles of inverted residuals do again what takes half of a launch's time at the most, at a GPU's peak."""
    profile = PROFILES[name]
    most_us = MOST_AGAIN[profile.gpu.integrated] * profile.cores / (profile.tflops * 1e6)
    assert most_us <= profile.launch_us / 2


def test_nothing_runs() -> None:
    """To run what was planned for it is an error that says so."""
    interpreter = Interpreter(dense(), delegates=[CLDelegate(device=AbsentDevice("mali"), strict=True)])
    interpreter.allocate_tensors()
    with pytest.raises(DelegateError, match="mali is only planned for"):
        interpreter.invoke()
    with pytest.raises(DelegateError, match=r"expected one of sm_80, .* got 'sm_1'"):
        AbsentDevice("sm_1")


def test_the_command_needs_no_opencl(tmp_path: Path) -> None:
    """``inspect --as`` plans where pyopencl cannot even be imported."""
    write_file(dense(), tmp_path / "dense.tflite")
    arguments = ["inspect", str(tmp_path / "dense.tflite"), "--delegate", "--as", "xe_lp", "--json"]
    command = [sys.executable, "-c", _WITHOUT_PYOPENCL, *arguments]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["launches"][-1]["entry"] == "softmax_local"
    assert found["roofline_us"] == pytest.approx(sum(row["roofline_us"] for row in found["launches"]))
    assert found["profile"]["product"] == "Intel Iris Xe, 96 units"
    assert all(node["claimed"] for node in found["delegation"]["nodes"])


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
            _device("Advanced Micro Devices, Inc.", name="gfx1100", wavefront_width_amd=32),
            Gpu("amd", 32),
        ),
        (_device("Intel(R) Corporation", shared=True), Gpu("intel", 8, integrated=True)),
        (_device("ARM"), Gpu("arm", 16)),
        (_device("Mesa", extensions=""), Gpu()),
    ],
    ids=lambda value: getattr(value, "vendor", None),
)
def test_what_a_driver_tells(device: Any, found: Gpu) -> None:
    """A device's own words become the properties; what it does not tell is not there."""
    assert gpu_of(device) == found


@pytest.mark.parametrize(("fewest", "macros"), [(8, {}), (16, {"LITECL_SUBGROUP": 16})])
def test_intels_lockstep(fewest: int, macros: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where 16 work-items are the fewest that a compiler may choose, it is told to."""

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

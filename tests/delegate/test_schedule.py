"""How work is dealt out: in one place, as data that a tuning replaces for every kernel, with the same results."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litecl import delegate as package
from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.cl_op import Target
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.opencl.devices.device import target_of
from litecl.delegate.tuning import TileShape
from support import devices
from support.as_gpu import gpu_like
from support.by_name import agrees, case_of, launches

_GROUPS = ("groups.py", "block_groups.py", "cell_groups.py", "pixel_groups.py", "candidates.py", "tiles.py")
_DEALS_OUT = {
    "kit": ("schedule.py",),
    "cpu": ("target.py", "shares.py"),
    "gpu": ("target.py", "one_group.py", *_GROUPS),
}
_ROOMS = ("kit", "matmul", "quantized", "recurrent", "cpu", "gpu", "ops")
_NARROW = (TileShape(3, 1, 1.0),)
# By kernel: the fields that are changed, and a case of which the kernel is a part. Fields of a CPU, then of a GPU.
_FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str, str]]] = {
    "gemm": (
        {"most": 2e3, "least": 1, "tiles": _NARROW},
        {"group": 8, "wide": 4},
        ("tiles_device", "CONV_2D", "1x1, 33 to 5 channels"),
    ),
    "conv_2d": (
        {"most": 2e3, "least": 1, "tiles": _NARROW},
        {"group": 8, "wide": 2},
        ("tiles_device", "CONV_2D", "groups of 17 channels"),
    ),
    "winograd": (
        {"items_per_unit": 1, "items_alone": 2, "tiles": _NARROW},
        {},
        ("tiles_device", "CONV_2D", "3x3, 24 to 96 channels"),
    ),
    "depthwise_conv_2d": (
        {"least": 10, "items_alone": 3, "tiles": (TileShape(2, 1, 1.0),)},
        {"group": 4, "wide": 2, "tiles": (TileShape(3, 1, 1.0),)},
        ("depthwise_conv_2d", "DEPTHWISE_CONV_2D", "3x3 SAME"),
    ),
    "quantized_conv_2d": (
        {"least": 10, "items_per_unit": 3, "items_alone": 5, "tiles": _NARROW},
        {"group": 8, "wide": 4},
        ("integer_device", "CONV_2D", "UINT8, 1x1, 5 to 24"),
    ),
    "hybrid_conv_2d": (
        {"least": 10, "items_per_unit": 3, "items_alone": 5, "tiles": _NARROW},
        {"group": 8, "wide": 4},
        ("hybrid", "FULLY_CONNECTED", "8 bits, 9 x 64 to 130"),
    ),
    "quantize_rows": (
        {"least": 8, "items_alone": 3},
        {"least": 8, "pieces": 5, "group": 4},
        ("hybrid", "FULLY_CONNECTED", "8 bits, 9 x 64 to 130"),
    ),
    "quantized_depthwise_conv_2d": (
        {"least": 10, "items_alone": 3, "tiles": (TileShape(2, 1, 1.0),)},
        {"group": 4, "tiles": (TileShape(2, 1, 1.0),)},
        ("integer_device", "DEPTHWISE_CONV_2D", "INT8, 3x3, 64"),
    ),
    "lstm": (
        {"tiles": (TileShape(1, 1, 1.0),)},
        {"group": 16, "wide": 8, "tiles": (TileShape(2, 1, 1.0),)},
        ("lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM", "projection"),
    ),
    "unary": ({"least": 1, "items_alone": 3}, {"group": 8}, ("vector_width", "EXP", "131")),
    "reduce": ({"least": 1, "items_alone": 3}, {"group": 8}, ("vector_width", "MEAN", "columns of 131")),
}


def test_lowerings_deal_out_no_work() -> None:
    """They neither build launches nor look at how many work-items a device runs, or groups together."""
    hidden = {"compute_units", "max_work_group_size", "local_size", "global_size"}
    root = Path(package.__file__).parent
    deals_out = [root / room / name for room, names in _DEALS_OUT.items() for name in names]
    for path in (path for room in _ROOMS for path in (root / room).rglob("*.py") if path not in deals_out):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in hidden, f"{path}: {node.attr}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "Launch", path


def _gpu() -> GpuTarget:
    device = devices.tested()[0]
    return gpu_like(device, target_of(device))


def tuned(kernel: str, target: Target, changes: dict[str, Any]) -> Tuning:
    return Tuning(schedules={kernel: replace(target.schedule(kernel), **changes)})


def shapes(kernel: str, target: Target) -> list[Any]:
    fed = case_of(*_FAMILIES[kernel][2])
    return [(x.global_size, x.local_size, x.defines) for x in launches(fed, target) if x.kernel == kernel]


@pytest.mark.parametrize("kernel", _FAMILIES)
def test_a_tuned_schedule_changes_launches_and_no_result(kernel: str) -> None:
    device = devices.tested()[0]
    target = target_of(device)
    tuning = tuned(kernel, target, _FAMILIES[kernel][0])
    assert shapes(kernel, target) != shapes(kernel, replace(target, tuning=tuning))
    agrees(case_of(*_FAMILIES[kernel][2]), [CLDelegate(device=device, tuning=tuning, strict=True)])


@pytest.mark.parametrize("kernel", _FAMILIES)
def test_a_schedule_without_memory_for_caches(kernel: str) -> None:
    target = CpuTarget(4, 3)
    tuning = tuned(kernel, target, {"near_bytes": 0, "far_bytes": 0})
    assert shapes(kernel, replace(target, tuning=tuning))


def test_tiles_none_of_which_divides_a_panel_have_panels_of_their_own() -> None:
    device = devices.tested()[0]
    tuning = tuned("hybrid_conv_2d", target_of(device), {"tiles": (TileShape(2, 3, 1.0),)})
    fed = case_of(*_FAMILIES["hybrid_conv_2d"][2])
    agrees(fed, [CLDelegate(device=device, tuning=tuning, strict=True)])


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of a delegate for which the first device is a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        yield devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("kernel", [kernel for kernel, (_, changes, _) in _FAMILIES.items() if changes])
def test_a_tuned_schedule_changes_launches_on_a_gpu_and_no_result(kernel: str, gpu: dict[str, Any]) -> None:
    devices.needs_cells(kernel.upper())
    target = _gpu()
    tuning = tuned(kernel, target, _FAMILIES[kernel][1])
    assert shapes(kernel, target) != shapes(kernel, replace(target, tuning=tuning))
    agrees(case_of(*_FAMILIES[kernel][2]), [CLDelegate(**gpu, tuning=tuning, strict=True)])


def test_the_units_of_a_cell_are_in_one_group() -> None:
    """Its work-items wait for each other at every step; those of another group would overwrite what they read."""
    target = _gpu()
    narrow = tuned("lstm", target, {"group": 16, "wide": 8})
    for tuning in (target.tuning, narrow):
        ((global_size, local_size, _),) = shapes("lstm", replace(target, tuning=tuning))
        assert global_size[0] == local_size[0]


@pytest.mark.parametrize(("target", "changed"), [(CpuTarget(4, 3), 0), (GpuTarget(4, 3, max_work_group_size=256), 1)])
def test_every_kernel_of_a_model_asks_for_its_own_schedule(target: Target, changed: int) -> None:
    """Of whatever file a launch is, a schedule for another does not change it."""
    for kernel, (*changes_by_kind, _) in _FAMILIES.items():
        changes = changes_by_kind[changed]
        others = {**{f: replace(target.schedule(f), **changes) for f in _FAMILIES if f != kernel}}
        assert shapes(kernel, target) == shapes(kernel, replace(target, tuning=Tuning(schedules=others)))

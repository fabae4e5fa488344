"""Tiles of a GPU's products: chosen by measurement, by the family or by an estimate; every one computes the same."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.cl_op import Target
from litecl.delegate.gpu.candidates import candidates
from litecl.delegate.gpu.pixel_groups import READS, pixel_share
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.gpu.tiles import estimated_share, local_share, possible_shares
from litecl.delegate.tuning import GroupTile, Measurement, Products, Schedule, file_of, load, save, save_tiles
from litecl.interpreter import Interpreter
from support import networks
from support.gpu_nets import check
from support.gpu_products import PRODUCTS, depthwise
from support.planned_gpu import GPUS, PlannedGpu

DEVICE = ("a platform", "OpenCL 3.0", "a GPU", "1")
_SIZES = (1, 784, 64, 2048)
_PRODUCTS = Products(*_SIZES)
_OTHER = GroupTile(64, 64, 8, 4, 2)


def target(name: str = "amd", **changes: Any) -> Target:
    """Return what lowerings know of a GPU of the table, with changes."""
    return replace(GPUS[name], **changes)


def tuned(*tiles: GroupTile, products: Products = _PRODUCTS) -> Tuning:
    return Tuning(tiles={str(products): tile for tile in tiles})


def test_a_tile_that_was_measured_is_taken_for_these_products_alone() -> None:
    gpu = target(tuning=tuned(_OTHER))
    share = local_share(gpu, *_SIZES)
    assert share is not None
    assert (share.tiled.tile, share.tiled.source) == (_OTHER, "measured")
    for other in (
        local_share(gpu, 1, 784, 64, 2052),
        local_share(gpu, *_SIZES, reads="patches"),
        local_share(gpu, *_SIZES, arithmetic="int8"),
        local_share(gpu, *_SIZES, arithmetic="fp16"),
    ):
        assert other is not None and other.source == "estimate" and other.tiled.tile != _OTHER


@pytest.mark.parametrize(
    ("tile", "changes"),
    [
        (GroupTile(48, 48, 4, 4), {}),
        (GroupTile(64, 64, 8, 16), {}),
        (GroupTile(64, 64, 8, 8, 3), {}),
        (GroupTile(64, 64, 8, 8, 128), {}),
        (GroupTile(64, 64, 8, 8), {"gpu": Gpu("intel", 16)}),
        (GroupTile(64, 64, 8, 4, 2), {"gpu": Gpu("arm", 16)}),
        (GroupTile(128, 128, 8, 8), {"max_work_group_size": 128}),
        (GroupTile(128, 128, 8, 8), {"local_mem_bytes": 1 << 14}),
    ],
    ids=str,
)
def test_a_tile_that_a_device_cannot_have_counts_as_none(tile: GroupTile, changes: dict[str, Any]) -> None:
    """Its file may come from another version, or have been changed."""
    gpu = target(**changes)
    assert local_share(replace(gpu, tuning=tuned(tile)), *_SIZES) == local_share(gpu, *_SIZES) != None  # noqa: E711


def test_families_have_tiles_of_their_own() -> None:
    """And the number of groups that a compute unit takes; all others' tiles are the same."""
    found = {}
    for name in GPUS:
        share = local_share(target(name), 1, 8192, 8192, 64)
        assert share is not None
        found[name] = (share.tile.rows, share.tile.columns, share.source)
    assert found.pop("nvidia") == (128, 64, "family")
    assert found.pop("qualcomm") == (64, 128, "family")
    assert found.pop("amd of 64") == (64, 64, "family")
    assert set(found.values()) == {(64, 64, "estimate")}


def test_most_of_a_tile_is_of_use() -> None:
    """Of a few columns, or rows, a smaller tile is chosen though larger ones would keep all units busy."""
    sizes = {(1 << 16, 64): 64, (1 << 16, 33): 64, (1 << 16, 32): 32, (33, 1 << 16): 64, (32, 1 << 16): 32}
    for (rows, columns), wanted in sizes.items():
        share = local_share(target(), 1, rows, columns, 64)
        assert share is not None and share.tile.rows == wanted, (rows, columns)


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize(
    "products",
    [_PRODUCTS, Products(1, 784, 32, 144), Products(1, 49, 1280, 320), Products(4, 9, 5, 8, "patches", "int8")],
    ids=str,
)
def test_few_are_worth_measuring_and_the_estimate_is_the_first(name: str, products: Products) -> None:
    gpu = target(name)
    found = candidates(gpu, products)
    assert found[0] == estimated_share(gpu, products).tiled.tile
    assert len(found) == len(set(found)) <= 6
    assert {*found} <= {share.tiled.tile for share in possible_shares(gpu, products)}


@pytest.fixture(
    scope="module",
    params=[
        (networks.mobilenet_v2, "fp32", 30),
        (networks.mobilenet_v2, "fp16", 30),
        (networks.resnet_50, "fp32", 56),
        (networks.efficientnet_b0, "fp32", 100),
    ],
    ids=["MobileNetV2", "MobileNetV2 in halves", "ResNet-50", "EfficientNet-B0"],
)
def network(request: Any) -> tuple[bytes, Any, int]:
    make, precision, launches = request.param
    return make(), precision, launches


@pytest.mark.parametrize("name", GPUS)
def test_launches_are_few_and_none_that_computes_for_long_leaves_more_than_half_of_a_gpu_idle(
    name: str, network: tuple[bytes, Any, int]
) -> None:
    """Units of Intel's GPUs are vector engines, each of which takes some work-items of a group in lockstep."""
    device, (content, precision, most) = PlannedGpu(name), network
    delegate = CLDelegate(device=device, precision=precision, strict=True)
    Interpreter(model_content=content, delegates=[delegate]).allocate_tensors()
    works = [work.launch for plan in device.plans for work in plan.works]
    assert len(works) <= most
    gpu = GPUS[name].gpu
    in_lockstep = gpu.subgroup if gpu.vendor == "intel" else 0
    long = [prod(x.global_size) // (in_lockstep or prod(x.local_size)) for x in works if x.flops > 1e6]
    assert 2 * min(long) >= GPUS[name].compute_units


def test_tiles_are_kept_beside_all_else_that_was_measured(tmp_path: Path) -> None:
    settings = Measurement(Tuning(small_flops=1e6, schedules={"product_local": Schedule(4)}))
    save(tmp_path, DEVICE, "a GPU", settings)
    save_tiles(tmp_path, DEVICE, "a GPU", {"one": _OTHER})
    save_tiles(tmp_path, DEVICE, "a GPU", {"two": _OTHER})
    assert load(tmp_path, DEVICE) == replace(settings.tuning, tiles={"one": _OTHER, "two": _OTHER})
    assert load(tmp_path, (*DEVICE[:-1], "2")) == Tuning()


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ('"tiles_version": 1', '"tiles_version": 0', Tuning(small_flops=1e6)),
        ('"rows": 64', '"rows": 0', Tuning()),
        ('"rows": 64', '"rows": "64"', Tuning()),
        ('"rows": 64', '"lines": 64', Tuning()),
    ],
)
def test_tiles_of_another_version_or_corrupt_ones_count_as_none(
    old: str, new: str, left: Tuning, tmp_path: Path
) -> None:
    """Those of kernels that are no more leave the other settings as they are; a corrupt file counts as none."""
    save(tmp_path, DEVICE, "a GPU", Measurement(Tuning(small_flops=1e6, tiles={"one": _OTHER})))
    path = file_of(tmp_path, DEVICE)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert load(tmp_path, DEVICE) == left


def test_writers_leave_each_others_tiles(tmp_path: Path) -> None:
    """The file is whole at any time, and a writer that reads it last keeps the others' tiles."""
    with ThreadPoolExecutor(2) as writers:
        waiting = [writers.submit(save_tiles, tmp_path, DEVICE, "a GPU", {str(i): _OTHER}) for i in range(60)]
        while not all(future.done() for future in waiting):
            assert set(load(tmp_path, DEVICE).tiles.values()) <= {_OTHER}
    save_tiles(tmp_path, DEVICE, "a GPU", {"last": _OTHER})
    assert {"last"} < {*load(tmp_path, DEVICE).tiles}
    assert [*tmp_path.iterdir()] == [file_of(tmp_path, DEVICE)]


class _ForAll(dict[str, GroupTile]):
    """A tile for all products."""

    def get(self, key: str, default: Any = None) -> Any:
        return next(iter(self.values()))


_MORE = [
    (128, 128, 8, 8),
    (128, 64, 8, 8),
    (64, 128, 8, 8),
    (64, 64, 4, 4),
    (64, 32, 4, 4),
    (32, 64, 4, 4),
    (16, 64, 4, 4),
]


def test_all_tiles_are_run() -> None:
    """Those that an estimate chooses by ``test_gpu_kernels.py``, all others here."""
    found = {share.tile for name in GPUS for share in possible_shares(target(name), _PRODUCTS)}
    sizes = {(tile.rows, tile.columns, tile.own_rows, tile.own_columns) for tile in found}
    assert sizes == {*_MORE, (64, 64, 8, 8), (64, 64, 8, 4), (32, 32, 4, 4), (16, 32, 4, 4)}


_RUNS = (
    *(("edges", 2, size) for size in _MORE),
    *(("3x3, stride 2", 1, _MORE[i]) for i in (0, 5)),
    *(("weights that are computed", 4, _MORE[i]) for i in (1, 4, 6)),
)


@pytest.mark.parametrize(("name", "parts", "size"), _RUNS, ids=str)
def test_every_tile_computes_the_same(
    name: str, parts: int, size: tuple[int, int, int, int], gpu: dict[str, Any]
) -> None:
    tile = GroupTile(*size, parts)
    tuning = Tuning(tiles=_ForAll({"all": tile}))
    report = check(PRODUCTS[name](), {**gpu, "tuning": tuning, "profile": True}).delegation_report()
    assert [row.tiled.tile for row in report.kernels if row.tiled is not None] == [tile]


@pytest.mark.parametrize("tile", [GroupTile(8, 16, 1, 4), GroupTile(64, 32, 4, 4), GroupTile(64, 8, 1, 4)], ids=str)
def test_every_group_of_a_depthwise_convolution_computes_the_same(tile: GroupTile, gpu: dict[str, Any]) -> None:
    """Few and many work-items side by side, of a pixel or of four."""
    tuning = Tuning(tiles=_ForAll({"all": tile}))
    net = depthwise(9, 20, 3, stride=2)
    report = check(net, {**gpu, "tuning": tuning, "profile": True}).delegation_report()
    assert [(row.tiled.tile, row.tiled.source) for row in report.kernels if row.tiled is not None] == [
        (tile, "measured")
    ]


@pytest.mark.parametrize("tile", [GroupTile(8, 64, 1, 4), GroupTile(24, 16, 1, 4), GroupTile(8, 16, 2, 4)], ids=str)
def test_groups_that_a_depthwise_convolution_cannot_have_count_as_none(tile: GroupTile) -> None:
    sizes = 112, 112, 20, 9
    gpu = target(tuning=tuned(tile, products=Products(*sizes, READS)))
    assert pixel_share(gpu, *sizes) == pixel_share(target(), *sizes)
    small = target(max_work_group_size=32, tuning=tuned(GroupTile(16, 32, 1, 4), products=Products(*sizes, READS)))
    assert pixel_share(small, *sizes).local == (8, 4, 1)

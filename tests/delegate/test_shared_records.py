"""Records and codes that host and kernels share: laid out alike on the device, and declared in one place only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from litecl import kernels_cl
from litecl.delegate import CLDelegate
from litecl.delegate.backend import sources
from litecl.delegate.cl_op import Const, Launch, Record
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.kit import shared
from litecl.delegate.kit.shared import header
from litecl.delegate.matmul.product import Begin
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.plan.region_tables import Entry
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import MUL, SUB, MulOptions, SubOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.reduce import SUM, ReducerOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices, rope_nets, weight_only
from support.attention_nets import Attended
from support.build import Graph, model, randn
from support.by_name import Fed, agrees, case_of, launches
from support.loop_models import FLOAT, INT, below, int32, next_, plus, while_model

KERNELS = sorted(Path(kernels_cl.__file__).parent.glob("*.*"))
TEXTS = {path.name: re.sub(r"//.*", "", path.read_text()) for path in KERNELS if path.suffix in (".cl", ".h")}
INCLUDED = {name: path for path, name in re.findall(r"#include <((?:\w+\.)+(\w+))>", "".join(TEXTS.values()))}
SHARED = [getattr(import_module(f"litecl.{path.rpartition('.')[0]}"), name) for name, path in INCLUDED.items()]
CODES = [type_ for type_ in SHARED if not is_dataclass(type_)]


def within(record: type) -> Iterator[type]:
    """Yield a record and those in it."""
    yield record
    for _, type_ in shared.layout(record):
        if is_dataclass(type_):
            yield from within(type_)


RECORDS = [*dict.fromkeys(inner for type_ in SHARED if is_dataclass(type_) for inner in within(type_))]


def leaves(record: type, path: str = "") -> Iterator[str]:
    """Yield every scalar of a record as kernels name it."""
    for name, type_ in shared.layout(record):
        yield from leaves(type_, f"{path}{name}.") if is_dataclass(type_) else [f"{path}{name}"]


def offset(record: type, leaf: str) -> int:
    """Return where the host puts a scalar, in bytes."""
    dtype, at = shared.dtype_of(record), 0
    for name in leaf.split("."):
        assert dtype.fields is not None
        dtype, start = dtype.fields[name][:2]
        at += start
    return at


def run(device: Any, source: str, count: int, directory: Path, *arguments: Array) -> list[int]:
    """Return ``count`` numbers that the kernel ``test`` writes."""
    (path := directory / "shared.cl").write_text(f'#include "common.h"\n{source}')
    opened = Device(device, profile=False, cache_dir=None)
    kernel = opened.programs.kernel(str(path.with_suffix("")), "test", {})
    out = np.zeros(count, np.int32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(opened.context, flags, hostbuf=array) for array in (out, *arguments)]
    kernel(opened.queue, (1,), (1,), *buffers)
    cl.enqueue_copy(opened.queue, out, buffers[0], is_blocking=True)
    return [int(value) for value in out]


@pytest.mark.parametrize("device", devices.tested(), ids=lambda device: device.name)
def test_device_and_host_agree_on_every_size_and_offset(device: Any, tmp_path: Path) -> None:
    includes = "".join(
        f"#include <{record.__module__.removeprefix('litecl.')}.{record.__name__}>\n" for record in RECORDS
    )
    body, expected = "", []
    for record in RECORDS:
        name = record.__name__
        body += f"    {{\n        {name} v;\n        *out++ = sizeof(v);\n"
        body += "".join(f"        *out++ = (uchar *)&v.{leaf} - (uchar *)&v;\n" for leaf in leaves(record)) + "    }\n"
        expected += [shared.dtype_of(record).itemsize, *(offset(record, leaf) for leaf in leaves(record))]
    source = f"{includes}KERNEL void test(ITEM __global int *out) {{\n{body}}}\n"
    assert run(device, source, len(expected), tmp_path) == expected


def test_a_field_put_in_between_moves_on_both_sides(tmp_path: Path) -> None:
    """A kernel reads fields by name, so it reads what the host wrote wherever another field is added."""
    texts, body, parameters, arrays, expected = "", "", "", [], []
    for record in RECORDS:
        name, members = f"More{record.__name__}", [(field.name, field.type) for field in fields(record)]
        members.insert(len(members) // 2, ("added", int))
        more = make_dataclass(name, members, frozen=True)
        array = np.zeros(1, shared.dtype_of(more))
        for number, leaf in enumerate(leaves(more), start=len(expected)):
            *outer, last = leaf.split(".")
            place = array
            for member in outer:
                place = place[member]
            place[last] = number
            if leaf != "added":
                body += f"    *out++ = (int){name.lower()}->{leaf};\n"
                expected.append(number)
        texts += shared.text(more)
        parameters += f", __global const {name} *{name.lower()}"
        arrays.append(array)
    source = f"{texts}KERNEL void test(ITEM __global int *out{parameters}) {{\n{body}}}\n"
    assert run(devices.tested()[0], source, len(expected), tmp_path, *arrays) == expected


def chain() -> Fed:
    """Return a model whose operators are steps of one launch, and its inputs."""
    g, rng = Graph(), np.random.default_rng(3)
    x, feed = g.input((3, 5)), randn(rng, 3, 5)
    taken = g.op(SUB, [g.const(randn(rng, 3, 5)), g.op(unary.EXP, [x], NoOptions())], SubOptions())
    less = g.op(SUB, [taken, g.const(randn(rng, 5))], SubOptions())
    return write(model(g.build(g.op(unary.TANH, [less], NoOptions())))), [feed]


def loop() -> Fed:
    """Return a model that is a loop, and its inputs."""
    model_ = while_model((((), INT), ((2, 3), FLOAT)), below(5), lambda g, x: [next_(g, x[0]), plus(g, x[1], x[1])])
    return write(model_), [int32(0), randn(np.random.default_rng(4), 2, 3)]


def product_sum() -> Fed:
    """Return a model of products that are added up, and its inputs."""
    g, rng = Graph(), np.random.default_rng(8)
    products = g.op(MUL, [g.input((3, 4, 20)), g.const(randn(rng, 20))], MulOptions())
    return write(model(g.build(g.op(SUM, [products, g.const(np.array([1], np.int32))], ReducerOptions())))), [
        randn(rng, 3, 4, 20)
    ]


def attention() -> Fed:
    """Return a model of attention in tiles, and its inputs."""
    g, rng = Attended(), np.random.default_rng(6)
    content = write(model(g.build(g.seen(g.masked(g.scores(), (5, 7))))))
    return content, [randn(rng, *g.tensors[t].static_shape) for t in g.inputs]


def inverted_residual() -> Fed:
    """Return a model of three convolutions that are one launch on a GPU, and its inputs."""
    g, rng, clamped = Graph(), np.random.default_rng(7), ActivationFunctionType.RELU6
    options = [Conv2DOptions(Padding.SAME, 1, 1, activation) for activation in (clamped, ActivationFunctionType.NONE)]
    x, bias = g.input((1, 4, 5, 8)), g.const(randn(rng, 40))
    y = g.op(CONV_2D, [x, g.const(randn(rng, 40, 1, 1, 8)), bias], options[0])
    window = g.const(randn(rng, 1, 3, 3, 40))
    y = g.op(DEPTHWISE_CONV_2D, [y, window, bias], DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1, clamped))
    y = g.op(CONV_2D, [y, g.const(randn(rng, 12, 1, 1, 40)), g.const(randn(rng, 12))], options[1])
    return write(model(g.build(y))), [randn(rng, 1, 4, 5, 8)]


_CASES = {
    "attention": attention,
    "rope": rope_nets.fed,
    "inverted residual": inverted_residual,
    "chain": chain,
    "weight only": weight_only.fed,
    "loop": loop,
    "product sum": product_sum,
    **{
        f"{op} {name}": lambda table=table, op=op, name=name: case_of(table, op, name)
        for table, op, name in (
            ("conv_2d", "CONV_2D", "3x3 SAME, stride 2, even"),
            ("conv_3d", "CONV_3D", "3x3x3 SAME"),
            ("tiles_device", "CONV_2D", "3x3, 24 to 96 channels"),
            ("depthwise_conv_2d", "DEPTHWISE_CONV_2D", "3x3 SAME"),
            ("pool_2d", "AVERAGE_POOL_2D", "3x2, strides 1 and 2"),
            ("transpose_conv", "TRANSPOSE_CONV", "3x3 VALID, stride 2"),
            ("batch_matmul", "BATCH_MATMUL", "rank 3"),
            ("gather", "GATHER_ND", "rows"),
            ("detection_postprocess", "TFLite_Detection_PostProcess", "regular"),
            ("resize", "RESIZE_BILINEAR", "primes"),
            ("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE", "box"),
            ("lstm", "LSTM", "peephole"),
            ("integer_lstm", "LSTM", "zero points at the ends"),
            ("hybrid", "FULLY_CONNECTED", "8 bits"),
            ("integer_device", "CONV_2D", "INT8, 3x3, 16 to 33"),
            ("integer_device", "DEPTHWISE_CONV_2D", "INT8, 3x3, 64"),
            ("integer_conv", "DEPTHWISE_CONV_2D", "INT8 x INT8, 16 channels, 5x5"),
            ("integer_device", "DEPTHWISE_CONV_2D", "INT16, 3x3, 3"),
            ("integer_matmul", "BATCH_MATMUL", "INT8 x INT8, rank 3"),
            ("integer_matmul", "BATCH_MATMUL", "INT16 x INT16, rank 3"),
            ("quantized_binary", "ADD", "INT8 one scale"),
            ("quantized_binary", "MUL", "INT8 large"),
        )
    },
}


@pytest.fixture(scope="module")
def shuffled() -> Iterator[set[type]]:
    """Lay every record out in another order of its fields, with one more; the records that were laid out."""
    declared, seen = shared.layout, set[type]()

    def layout(record: type) -> list[tuple[str, Any]]:
        seen.add(record)
        first, *others = declared(record)
        return [*reversed(others), first]

    def forget() -> None:
        for cached in (header, shared.dtype_of, sources._own):
            cached.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "layout", layout)
        forget()
        yield seen
    forget()


@pytest.mark.parametrize("name", _CASES)
def test_kernels_do_not_know_the_order_of_fields(name: str, shuffled: set[type]) -> None:
    agrees(_CASES[name](), [CLDelegate(strict=True)])


def test_the_cases_reach_every_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """On devices with vectors of 8, in the kernel of a region, and on a GPU whose groups share memory."""
    found, dtype_of = set[type](), shared.dtype_of
    dtype_of.cache_clear()
    monkeypatch.setattr(shared, "dtype_of", lambda record: found.add(record) or dtype_of(record))
    cpus = CpuTarget(8, 2), CpuTarget(8, 2, byte_pairs=True)
    for target in (*cpus, GpuTarget(4, 2, max_work_group_size=256, local_mem_bytes=1 << 15)):
        for make in _CASES.values():
            launches(make(), target)
    assert {*RECORDS} - found == {Entry}


_SCALARS = {
    *("void", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "float4"),
    *("Weight", "ExpandWeight", "ProjectWeight", "Packed", "BlockScale", "Element", "Sum", "Mask"),
    *("Encoding", "Score", "Place", "Candidate"),
    *("T", "OUT", "R", "I", "X", "W"),
}


def test_kernels_take_shared_records_only() -> None:
    """A kernel reads numbers and declared records from the host; no name is declared twice."""
    names = {record.__name__ for record in RECORDS}
    aliases = re.findall(rf"typedef (?:{'|'.join(names)}) (\w+);", "".join(TEXTS.values()))
    macros = {*re.findall(r"#define (\w+)", "".join(shared.text(codes) for codes in CODES))}
    for file, text in TEXTS.items():
        for signature in re.findall(r"(?:KERNEL|__kernel)[^;{]*?\bvoid \w+\(([^{;]*)\)\s*{", text):
            assert {*re.findall(r"__global (?:const |volatile )*(\w+) ", signature)} <= _SCALARS.union(names, aliases)
        assert not names & {*re.findall(r"}\s*(\w+);", text)}, file
        assert not macros & {*re.findall(r"#define (\w+)", text)}, file
        assert not re.search(r"\benum\b|\bcase -?\d", text), file


def test_shared_records_are_made_field_by_field_in_kernels() -> None:
    """An initializer names the fields: it does not count on their order."""
    for file, text in TEXTS.items():
        for record in RECORDS:
            assert not re.search(rf"\b{record.__name__}\b\)?(?: \w+ =)?\s*{{(?!\s*\.)", text), file


def test_a_kernel_includes_every_record() -> None:
    declared = {record for record in Record.__subclasses__() if record.__module__.startswith("litecl.delegate.")}
    assert declared <= {*RECORDS}


@pytest.mark.parametrize(
    "path",
    ["Geometry", "delegate.matmul.geometri.Geometry", "delegate.matmul.geometry.Geometri", "delegate.launch.is_users"],
)
def test_a_path_without_a_record_is_refused(path: str) -> None:
    with pytest.raises(KernelBuildError, match=f"#include <{path}>: litecl declares no such record or codes"):
        header(path)


def test_records_among_arguments_become_constants() -> None:
    """A record, a table of several, and an empty table; other arguments stay unchanged."""
    number, other = np.int32(3), Const(np.zeros(2, np.float32))
    launch = Launch("gemm", "gemm", (number, Begin(1, 2), (Begin(3, 4), Begin(5, 6)), (), other), (1,))
    args = shared.with_constants(launch).args
    assert args[0] is number and args[4] is other
    one, two, none = (arg.data for arg in args[1:4] if isinstance(arg, Const) and arg.data is not None)
    assert [(int(row["x"]), int(row["weights"])) for row in (*one, *two)] == [(1, 2), (3, 4), (5, 6)]
    assert none.size == 0


@dataclass(frozen=True)
class Gap:
    """A compiler aligns ``wide``."""

    narrow: int
    wide: np.int64


@dataclass(frozen=True)
class Whole:
    """The same with the padding that a compiler would add."""

    narrow: int
    padding: int
    wide: np.int64


Text = make_dataclass("Text", [("name", str)])  # kernels have no type for it


def test_gaps_and_unknown_types_are_refused() -> None:
    assert shared.dtype_of(Whole).itemsize == 16
    with pytest.raises(TypeError, match="Gap: expected fields without gaps between them, got 4 bytes"):
        shared.text(Gap)
    with pytest.raises(TypeError, match=r"Text.name: expected a scalar or a record"):
        shared.text(Text)
    with pytest.raises(TypeError, match="int: expected a dataclass"):
        shared.dtype_of(int)

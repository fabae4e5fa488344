"""The options of the delegate."""

import operator
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, field, fields
from functools import cached_property
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

from litecl.delegate.cl_op import ClOp, DeviceOp
from litecl.delegate.naming import close_names, did_you_mean
from litecl.delegate.progress import USUAL_PATIENCE_S, Progress
from litecl.delegate.tuning import Tuning
from litecl.interpreter.arguments import flag
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.op import Op
from litecl.interpreter.ops import CUSTOMS

Precision = Literal["fp32", "fp16"]
WarmUpMode = Literal["block", "background"]
KeptNode = str | int | tuple[int, int]
"""A node by the name of a result, by its position in subgraph 0, or by (subgraph, position)."""

_NUMBERS = (int, int | None)  # types of numeric options
_CHOICES = {
    "precision": get_args(Precision),
    "dynamic_range": get_args(DynamicRange),
    "warm_up": get_args(WarmUpMode),
}


def _flag(flag: str, help_: str, file: str = "DIR") -> dict[str, str]:
    """Return metadata that makes an option a flag of the command ``litecl``, too; its annotation gives the type.

    file: the placeholder for a path.
    """
    return {"flag": flag, "help": help_, "file": file}


@dataclass(frozen=True, eq=False)
class CLOptions:
    """The keywords of ``CLDelegate``, declared here only: checked and frozen, with flags for the command.

    device: its index in ``litecl devices``, its name, part of exactly one name, a pyopencl Device, a pyopencl Context
        of one device for models to run in, or a device of your back end. Part of a platform's name ("pocl") picks that
        platform's device for the model. None prefers a GPU, discrete over integrated, then the processor ("native"),
        then another OpenCL device. A name that matches no device, or several, raises DeviceNotFound. Without any device
        a warning says what to install.
    num_threads: on the processor, 1 is the calling thread; N adds N - 1 helper threads (docs/threads.md). None uses one
        thread for models of less than 30 million operations, all cores for others. Limits an OpenCL device of the
        processor, if that can be partitioned.
    precision: "fp32", or "fp16", which stores large weights (over 2**18 elements) of convolutions, matrix products and
        LSTMs in half precision, except those for Winograd's algorithm. Arithmetic is float32.
    dynamic_range: how products of float activations and integer weights quantize the activations, on the device and on
        the CPU. "asymmetric" gives every row a zero point, like XNNPACK, LiteRT's default; "reference" follows LiteRT's
        reference kernels, whose rows are symmetric unless the file says otherwise (docs/quantization.md).
    keep_float: nodes that compute in float32, with float32 weights, even with precision="fp16": names of their results,
        positions in subgraph 0, or (subgraph, node) pairs. A loop or branch includes all nodes that it runs; a fused
        kernel stays in float32 if any of its nodes does. Raises DelegateError for a name or position without a node.
        ``litecl bisect --fp16`` proposes a list.
    max_delegated_partitions: keep at most this many regions, the largest; None keeps all.
    min_nodes_per_partition: leave smaller regions to the CPU.
    allow_ops, deny_ops: operator names.
    deny_nodes: node positions of subgraph 0, or (subgraph, node) pairs.
    cache_dir: where litecl puts ``litecl-cache``, its folder of program binaries and tunings, beside any other files.
        "auto" is ``~/.cache/litecl`` (``XDG_CACHE_HOME``, or the system's folder), None caches nothing. litecl warns
        about, and doesn't use, a ``litecl-cache`` that belongs to others or that others can write to.
    compiler: the clang, 16 or newer, to use instead of the one that litecl finds (docs/native.md). The device is then
        "native".
    compile_timeout: seconds that "native" gives its compiler for one file; past it, litecl stops the compiler and
        leaves the region to the CPU, with a warning. None waits without end.
    programs: a pack of compiled programs from ``litecl compile --for``, for machines without a compiler
        (docs/native.md). The device is then "native". A pack that is damaged, or for another machine, model or version
        of litecl, is a device failure.
    tuning: None uses the device's measurement by ``litecl devices --tuning``, or else the defaults.
    deterministic: compute the same bits on every processor with fused multiply-add, with any number of threads, but for
        the sign and payload of NaN (docs/promises.md): plan for vectors of 8 floats everywhere, and use no tuning. The
        device is then "native". The report names the nodes that this doesn't hold for.
    profile: measure the device time of every launch, within a region's kernel if the device can.
    strict: raise DelegateError if the device fails, instead of leaving the region to the CPU, or queueing its launches
        if it cannot be linked. Refusing an operator is not a failure.
    max_loop_iterations: the most iterations of a WHILE on the device each time it runs; more raise ModelError, and
        leave variables as they were before. None sets no limit. On a CPU device a loop runs within one kernel, which
        cannot be interrupted; queued loops, as on a GPU, respond to Ctrl-C.
    queue_loops: queue loops' iterations and launches one by one, even on a CPU device.
    dump_passes: a folder for the text of every region after each planning pass, with a folder per region
        (``region0``).
    custom_ops: your device operators, for the records given to ``Interpreter(custom_ops=...)``. Their launches name a
        kernel file by its absolute path, without ``.cl``; write it like litecl's own.
    warm_up: "block" prepares a model when allocating tensors. "background" prepares it in a thread: meanwhile the CPU
        runs the model, and the device takes over between two invokes; the report says since when. A memory or time
        limit implies "block".
    progress: called with a ``BuildStep`` before each file is compiled, and once all files of a region are. Not pickled.
    """

    device: object = field(
        default=None,
        metadata=_flag("--device", "an index or part of a name from `litecl devices` (default: by the model's size)"),
    )
    _: KW_ONLY
    num_threads: int | None = field(
        default=None,
        metadata=_flag(
            "--threads", "threads on the processor (default: 1 below 30 million operations, else one for each core)"
        ),
    )
    precision: Precision = field(
        default="fp32",
        metadata=_flag("--precision", "fp16 stores large weights in half precision"),
    )
    dynamic_range: DynamicRange = field(
        default="asymmetric",
        metadata=_flag("--dynamic-range", "how activations meet integer weights (default: asymmetric, as in XNNPACK)"),
    )
    keep_float: Collection[KeptNode] | None = field(
        default=None,
        metadata=_flag("--keep-float", "results whose nodes stay in float32 with --precision fp16", "NAME,..."),
    )
    max_delegated_partitions: int | None = None
    min_nodes_per_partition: int = 1
    allow_ops: Collection[str] | None = None
    deny_ops: Collection[str] | None = None
    deny_nodes: Collection[int | tuple[int, int]] | None = None
    cache_dir: str | PathLike[str] | None = field(
        default="auto", metadata=_flag("--cache", "folder of compiled programs (default: the user's cache)")
    )
    compiler: str | PathLike[str] | None = field(
        default=None, metadata=_flag("--compiler", "the clang (16 or newer) for the processor", "PATH")
    )
    compile_timeout: float | None = field(
        default=USUAL_PATIENCE_S,
        metadata=_flag("--compile-timeout", "seconds that the processor's compiler has for a file (default: 600)"),
    )
    programs: str | PathLike[str] | None = field(
        default=None,
        metadata=_flag("--programs", "a pack of programs, made by `litecl compile --for`", "PACK"),
    )
    tuning: Tuning | None = None
    deterministic: bool = field(
        default=False, metadata=_flag("--deterministic", "compute the same bits on every processor")
    )
    profile: bool = False
    strict: bool = False
    max_loop_iterations: int | None = None
    queue_loops: bool = False
    dump_passes: str | PathLike[str] | None = field(
        default=None, metadata=_flag("--dump-passes", "write every region to this folder after each planning pass")
    )
    custom_ops: Collection[ClOp] = ()
    warm_up: WarmUpMode = "block"
    progress: Progress | None = None

    if not TYPE_CHECKING:

        def __new__(cls, *_: Any, **options: Any) -> Any:
            """Raise TypeError for an unknown option, with a similar one."""
            known = [item.name for item in fields(cls)]
            for name in options.keys() - {*known}:
                like = did_you_mean(close_names(name, known, 1))
                raise TypeError(f"CLDelegate: there is no option {name!r}{like}")
            return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise DelegateError(f"{name}: expected {' or '.join(map(repr, choices))}, got {value!r}")
        for name, value in ((item.name, getattr(self, item.name)) for item in fields(self) if item.type in _NUMBERS):
            least = 0 if name.startswith("max_") else 1
            if value is not None and not (hasattr(value, "__index__") and value >= least):
                raise DelegateError(f"{name}: expected a number of at least {least}, got {value!r}")
        for name in (item.name for item in fields(self) if item.type is bool):
            object.__setattr__(self, name, flag(name, getattr(self, name), DelegateError))
        if self.deterministic and self.tuning is not None:
            raise DelegateError("deterministic: a tuning, which is of one processor, has no effect with it")
        seconds: Any = self.compile_timeout
        if seconds is not None and not (isinstance(seconds, Real) and float(seconds) > 0):
            raise DelegateError(f"compile_timeout: expected more than 0 s, got {seconds!r}")
        for name, freeze in _FROZEN.items():
            object.__setattr__(self, name, freeze(getattr(self, name)))
        for name in ("allow_ops", "deny_ops"):
            if names := getattr(self, name):
                _check_names(name, names, {cl_op.op.name for cl_op in self.custom_ops})

    def __getstate__(self) -> dict[str, Any]:
        """Return the options to pickle, without the progress callback. Raises DelegateError for a device object."""
        if self.device is not None and not isinstance(self.device, int | str):
            raise DelegateError(f"a delegate for {self.device} cannot be pickled: use the name or index of its device")
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"progress": None}

    @property
    def halves(self) -> bool:
        """Whether large weights of products are stored as fp16."""
        return self.precision == "fp16"

    def why_denied(self, op: str, place: tuple[int, int]) -> str | None:
        """Return why the user keeps a node on the CPU, or None. place: its subgraph and position."""
        if place in (self.deny_nodes or ()):
            return "denied by deny_nodes"
        if op in (self.deny_ops or ()):
            return "denied by deny_ops"
        return "not in allow_ops" if self.allow_ops is not None and op not in self.allow_ops else None

    @cached_property
    def cl_ops(self) -> Mapping[Op, DeviceOp]:
        """The device operators: litecl's, and the user's."""
        from litecl.delegate.ops import CL_OPS  # a model whose plans are kept needs none

        own: dict[Op, DeviceOp] = {cl_op.op: cl_op for cl_op in self.custom_ops}
        return ChainMap(own, CL_OPS)  # type: ignore[arg-type]  # CL_OPS is only read


def _check_names(option: str, names: Collection[str], customs: Collection[str]) -> None:
    """Raise DelegateError for an unknown operator name, and suggest similar ones.

    Accepts names that resemble none and aren't all capitals: they may be custom operators of a future model.
    """
    from litecl.delegate.ops import CL_OPS

    for name in sorted({*names}.difference(BUILTIN_OPERATORS, customs)):
        if name in CUSTOMS:
            continue
        known = {*BUILTIN_OPERATORS, *CUSTOMS, *customs}
        if not name.isupper() and not close_names(name.upper(), known, 1):
            continue
        like = close_names(name.upper(), known, 3) or sorted(op.name for op in CL_OPS)
        raise DelegateError(f"{option}: there is no operator {name!r}{did_you_mean(like)}")


def _denied(nodes: Any) -> frozenset[tuple[int, int]]:
    """Return ``deny_nodes`` as (subgraph, node) pairs; a bare number is a node of subgraph 0."""
    return frozenset(_pair("deny_nodes", node) for node in _listed("deny_nodes", nodes))


def _kept(nodes: Any) -> frozenset[KeptNode]:
    given = _listed("keep_float", nodes)
    return frozenset(node if isinstance(node, str | int) else _pair("keep_float", node) for node in given)


def _listed(option: str, nodes: Any) -> Collection[Any]:
    """Return nodes as a collection. Raises DelegateError for a string, and for anything but a collection."""
    if nodes is not None and (isinstance(nodes, str) or not isinstance(nodes, Collection)):
        raise DelegateError(f"{option}: expected a list, got {nodes!r:.100}")
    return nodes or ()


def _pair(option: str, node: Any) -> tuple[int, int]:
    """Return a node as (subgraph, position). Raises DelegateError for anything else."""
    try:
        subgraph, position = node if isinstance(node, Collection) else (0, node)
        return operator.index(subgraph), operator.index(position)
    except (TypeError, ValueError):
        raise DelegateError(f"{option}: expected a node, or a subgraph and a node, got {node!r:.100}") from None


_FROZEN: dict[str, Callable[[Any], Any]] = {
    "allow_ops": lambda names: None if names is None else frozenset(names),
    "deny_ops": lambda names: frozenset(names or ()),
    "deny_nodes": _denied,
    "keep_float": _kept,
    "custom_ops": tuple,
}

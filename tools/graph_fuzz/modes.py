"""The modes in which a device runs a model, and how a batch of models shares one linked program."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from litecl.delegate import CLDelegate, delegation
from litecl.delegate.cl_op import Launch
from litecl.delegate.devices import choose
from litecl.delegate.matmul import product
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.devices.programs import Programs
from litecl.delegate.opencl.kernel_objects import kernel_object
from litecl.delegate.opencl.runs import execution
from litecl.delegate.ops import fully_connected
from litecl.delegate.plan import region_program
from litecl.delegate.plan.region_program import Function, RegionProgram
from litecl.delegate.report import summary
from litecl.interpreter import Interpreter
from litecl.interpreter.dynamic_range import quantized_as
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Subgraph, TensorSpec
from litecl.interpreter.schema import TensorType
from litecl.random_graphs.graphs import Drawn
from support import pocl_processor
from support.as_gpu import as_gpu


@dataclass(frozen=True)
class Mode:
    """Options of the delegate, and other differences. linked: regions are one program. kept: all tensors are preserved.
    gpu: launches as for a GPU.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    linked: bool = False
    kept: bool = False
    gpu: bool = False


_COMPARED = {"dynamic_range": "reference"}  # as the interpreter computes

MODES = {
    mode.name: mode
    for mode in (
        Mode("one thread", {"device": "native", "num_threads": 1}, linked=True),
        Mode("two threads", {"device": "native", "num_threads": 2}, linked=True),
        Mode("queued", {"device": "native", "num_threads": 1, "queue_loops": True}, linked=True),
        Mode("profile", {"device": "native", "num_threads": 2, "profile": True}, linked=True),
        Mode("fp16 weights", {"device": "native", "num_threads": 1, "precision": "fp16"}, linked=True),
        Mode("asymmetric", {"device": "native", "num_threads": 1, "dynamic_range": "asymmetric"}, linked=True),
        Mode("all tensors kept", {"device": "native", "num_threads": 1}, linked=True, kept=True),
        Mode("OpenCL, one group", {"device": "basic"}, linked=True),
        Mode("OpenCL, several groups", {"device": "pthread"}, linked=True),
        Mode("OpenCL, queued", {"device": "pthread", "queue_loops": True}),
        Mode("as a GPU", {"device": "pthread"}, gpu=True),
    )
}


def fault_of(mode: Mode) -> str:
    """Return why a mode cannot be run on this machine; empty if it can."""
    pocl_processor.watch()
    try:
        choose(mode.options["device"]).target()
    except DelegateError as error:
        return summary(error)
    return ""


@contextmanager
def entered(mode: Mode) -> Iterator[None]:
    """Change what a mode changes besides the delegate's options, temporarily."""
    pocl_processor.watch()
    with ExitStack() as stack:
        if mode.gpu:
            stack.enter_context(mock.patch.multiple(device, **as_gpu()))
        if mode.options.get("precision") == "fp16":  # of small weights too
            stack.enter_context(mock.patch.object(product, "CACHED_WEIGHTS", 16))
            stack.enter_context(mock.patch.object(fully_connected, "CACHED_WEIGHTS", 64))
        yield


def adapted(drawn: Drawn, mode: Mode) -> Drawn:
    """Return the model that a mode is compared with: weights rounded to halves, if weights are halves, and rows of
    dynamic range that are asymmetric, if the mode's are.
    """
    drawn = replace(drawn, model=quantized_as(drawn.model, mode.options.get("dynamic_range", "reference")))
    if mode.options.get("precision") != "fp16":
        return drawn
    graphs = tuple(_in_halves(graph) for graph in drawn.model.subgraphs)
    return replace(drawn, model=replace(drawn.model, subgraphs=graphs))


def _in_halves(graph: Subgraph) -> Subgraph:
    return replace(graph, tensors=tuple(_in_half(spec) for spec in graph.tensors))


def _in_half(spec: TensorSpec) -> TensorSpec:
    if spec.data is None:
        return spec
    if spec.type == TensorType.FLOAT32:
        return replace(spec, data=np.asarray(spec.data, np.float16).astype(np.float32))
    if spec.quantization is None:
        return spec
    scale = np.exp2(np.round(np.log2(spec.quantization.scale))).astype(np.float32)
    return replace(spec, quantization=replace(spec.quantization, scale=scale))


def interpreter(drawn: Drawn, mode: Mode, cache_dir: Path | None) -> Interpreter:
    """Return the interpreter with the device."""
    chosen = CLDelegate(**_COMPARED | mode.options, strict=True, cache_dir=cache_dir, deny_nodes=drawn.deny)
    return Interpreter(drawn.model, delegates=[chosen], experimental_preserve_all_tensors=mode.kept)


def _prepare(planned: Interpreter, drawn: Drawn) -> None:
    """Prepares a model for the shapes of all calls."""
    for call in drawn.calls:
        for tensor, feed in zip(drawn.model.subgraphs[call.entry].inputs, call.feeds, strict=True):
            planned.resize_tensor_input(tensor, feed.shape, subgraph_index=call.entry)
        planned.allocate_tensors()


Needed = tuple[Function, tuple[int, ...]]


class Shared:
    """The functions that the linked program of a batch of models has: it is built once, with all of them.

    most: how many there may be, with their local sizes: PoCL's cache of compiled kernels holds 128.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._needed: set[Needed] = set()
        self._functions: dict[Function, int] = {}

    def __len__(self) -> int:
        return len(self._needed)

    def take(self, drawn: Drawn, mode: Mode) -> Counter[str] | None:
        """Add the functions that a model needs, in the shapes of all calls; its launches by kernel file.

        None, with nothing added, if there would be too many.
        """
        launches: list[Launch] = []

        class Recorder:
            def __init__(self, plan: Any, *rest: Any) -> None:
                launches.extend(work.launch for work in plan.works)
                raise DelegateError("only planned")

        options = {**_COMPARED, **mode.options, "deny_nodes": drawn.deny, "cache_dir": None}
        with mock.patch.object(delegation, "Program", Recorder), mock.patch.object(delegation, "warn"):
            planned = Interpreter(
                drawn.model, delegates=[CLDelegate(**options)], experimental_preserve_all_tensors=mode.kept
            )
            with suppress(Exception):  # what fails here fails again later, where it is examined
                _prepare(planned, drawn)
        functions = {(f, launch.local_size): launch for launch in launches if (f := region_program.function_of(launch))}
        if len(self._needed | functions.keys()) > self._most:
            return None
        self._needed |= functions.keys()
        for (function, _), launch in functions.items():
            if launch.apart or not mode.gpu:  # one group of a GPU links nothing whose work-items wait for each other
                self._functions.setdefault(function, len(self._functions))
        return Counter(launch.kernel for launch in launches)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Link regions with all functions, whatever they need."""
        real, linked = region_program._Tables.__init__, Programs.region_kernel
        known: dict[tuple[Any, ...], Any] = {}

        def seeded(tables: Any, *rest: Any) -> None:
            real(tables, *rest)
            tables.functions.update(self._functions)

        def linked_once(programs: Programs, region: RegionProgram, **how: bool) -> Any:
            key = (programs, *how.items(), region.functions)
            if key not in known:
                known[key] = linked(programs, region, **how)
            return kernel_object(known[key].program, "run")

        with (
            mock.patch.object(region_program._Tables, "__init__", seeded),
            mock.patch.object(Programs, "region_kernel", linked_once),
            mock.patch.object(execution, "_REGION_LAUNCHES", 1),  # small regions too: else built one by one
        ):
            yield

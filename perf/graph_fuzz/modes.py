"""The ways in which a device runs a model, and how a batch of models shares one linked program."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from litecl.delegate import CLDelegate, delegate, device, packing, programs, region_program
from litecl.delegate.ops import fully_connected
from litecl.delegate.region_program import Function
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Model, Subgraph, TensorSpec
from litecl.interpreter.schema import TensorType
from litecl.perf.graph_fuzz.graphs import Call, Drawn
from litecl.perf.graph_fuzz.oracle import Outputs, run


@dataclass(frozen=True)
class Mode:
    """Options of the delegate, and what else is different.

    linked: regions are one kernel. kept: all tensors are preserved. gpu: launches as a GPU gets them.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    linked: bool = False
    kept: bool = False
    gpu: bool = False


MODES = {
    mode.name: mode
    for mode in (
        Mode("one thread", {"num_threads": 1}, linked=True),
        Mode("two threads", {"num_threads": 2}, linked=True),
        Mode("queued", {"num_threads": 1, "queue_loops": True}),
        Mode("queued, two threads", {"num_threads": 2, "queue_loops": True}),
        Mode("profile", {"num_threads": 1, "profile": True}),
        Mode("fp16 weights", {"num_threads": 1, "precision": "fp16"}, linked=True),
        Mode("as a GPU", {"device": "pthread"}, gpu=True),
        Mode("all tensors kept", {"num_threads": 1}, linked=True, kept=True),
    )
}


@contextmanager
def entered(mode: Mode) -> Iterator[None]:
    """What a mode changes beside the delegate's options."""
    real = device.target_of
    with ExitStack() as stack:
        if mode.gpu:
            gpu = lambda opened, *rest: replace(real(opened, *rest), kind="gpu", vector_width=4)  # noqa: E731
            stack.enter_context(mock.patch.object(device, "target_of", gpu))
        if mode.options.get("precision") == "fp16":  # of small weights too
            stack.enter_context(mock.patch.object(packing, "CACHED_WEIGHTS", 16))
            stack.enter_context(mock.patch.object(fully_connected, "CACHED_WEIGHTS", 64))
        yield


def adapted(drawn: Drawn, mode: Mode) -> Drawn:
    """The model as a mode can be held to it: weights that halves hold, where weights are halves."""
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


def interpreter(drawn: Drawn, mode: Mode, cache_dir: Path | None, deny: tuple[int, ...] = ()) -> Interpreter:
    """The interpreter with the device."""
    chosen = CLDelegate(**mode.options, strict=True, cache_dir=cache_dir, deny_nodes=deny, max_loop_iterations=1000)
    return Interpreter(drawn.model, delegates=[chosen], experimental_preserve_all_tensors=mode.kept)


class Shared:
    """The functions that the linked program of a batch of models has: it is built once, with all of them."""

    def __init__(self) -> None:
        self._functions: dict[Function, int] = {}

    def __len__(self) -> int:
        return len(self._functions)

    def collect(self, model: Model, calls: tuple[Call, ...], mode: Mode) -> None:
        """Adds the functions that a model needs, in the shapes of all calls."""

        class Recorder:
            def __init__(_, plan: Any, *rest: Any) -> None:  # noqa: N805
                for work in plan.works:
                    function = region_program.function_of(work.launch)
                    if function is not None:
                        self._functions.setdefault(function, len(self._functions))
                raise DelegateError("only planned")

        options = {**mode.options, "strict": False, "cache_dir": None}
        with mock.patch.object(delegate, "Program", Recorder):
            planned = Interpreter(
                model, delegates=[CLDelegate(**options)], experimental_preserve_all_tensors=mode.kept
            )
            run(planned, calls)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Regions are linked with all functions, whatever they need."""
        real = region_program._Tables.__init__

        def seeded(tables: Any, *rest: Any) -> None:
            real(tables, *rest)
            tables.functions.update(self._functions)

        with mock.patch.object(region_program._Tables, "__init__", seeded):
            yield


def outputs(drawn: Drawn, mode: Mode, cache_dir: Path | None, deny: tuple[int, ...] = ()) -> tuple[Outputs, Any]:
    """What the device answers, and the report."""
    runner = interpreter(drawn, mode, cache_dir, deny)
    results = run(runner, drawn.calls)
    return results, runner.delegation_report()


__all__ = ["MODES", "Mode", "Shared", "adapted", "entered", "interpreter", "outputs", "programs"]

"""The runtimes to compare, as suspect or reference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from litecl.delegate import CLDelegate
from litecl.halves import Emulation, Mode
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.contenders import typed_errors
from litecl.perf.feeds import Runtime, run_on
from litecl.perf.peers import litert
from litecl.perf.peers.litert import RESOLVERS, peer_name

INTERPRETER, DEVICE = "interpreter", "device"
EMULATED: Mapping[str, Mode] = {f"fp16-{mode}": mode for mode in get_args(Mode)}
"""The names of emulated devices with 16-bit floats."""

Run = Callable[[Sequence[Array]], list[Array]]
"""Runs a model on input values and returns its outputs, both in the model's order."""


@dataclass(frozen=True)
class Runner:
    """A runtime by name: ``interpreter`` (litecl's, without a device), ``litert``, ``litert-reference`` (LiteRT's
    reference kernels), ``fp16-storage``, ``fp16-sums`` or ``fp16-both`` (an ``Emulation``), ``device`` (the one that
    litecl chooses), or a device's name.

    options: keywords of ``CLDelegate``, for devices. ``keep_float`` names nodes by their results. numbers: as for
    ``Interpreter``, of what litecl runs.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    numbers: Numbers = "reference"

    @property
    def is_device(self) -> bool:
        """True if this is a litecl device."""
        return peer_name(self.name) not in (INTERPRETER, *RESOLVERS, *EMULATED)

    def load(self, content: bytes, *, preserve: bool = False) -> Runtime:
        """Load a model. preserve: keep all tensors readable. Raises LiteclError."""
        name = peer_name(self.name)
        if name in RESOLVERS:
            with typed_errors(name, "load"):
                return litert.load(content, resolver=RESOLVERS[name], preserve=preserve)
        delegates = [] if name == INTERPRETER else [self._delegate(content)]
        mode = self.options.get("dynamic_range")
        return Interpreter(
            model_content=content,
            delegates=delegates,
            experimental_preserve_all_tensors=preserve,
            dynamic_range=mode,
            numbers=self.numbers,
        )

    def _delegate(self, content: bytes) -> Any:
        kept = _named(content, self.options.get("keep_float") or ())
        if self.name in EMULATED:
            return Emulation(EMULATED[self.name], kept)
        device = None if self.name == DEVICE else self.name
        # Strict: nodes that fall back to the CPU would prove nothing about the device.
        return CLDelegate(device=device, **{"strict": True, **self.options, "keep_float": kept})

    def prepare(self, content: bytes) -> Run:
        """Return a function that runs a model on inputs of its declared shapes. Raises LiteclError."""
        runtime = self.load(content)
        return lambda values: run(runtime, values, self.name)


def _named(content: bytes, kept: Sequence[str]) -> list[str]:
    """Filter result names to those that this model computes: it may be a part of the original model."""
    if not kept:
        return []
    graphs = read(content).subgraphs
    known = {graph.tensors[t].name for graph in graphs for node in graph.nodes for t in node.outputs}
    return [name for name in kept if name in known]


def run(runtime: Runtime, values: Sequence[Array], name: str) -> list[Array]:
    """Run a model once. Raises LiteclError."""
    with typed_errors(name):
        return run_on(runtime, values)

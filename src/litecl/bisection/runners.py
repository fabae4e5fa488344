"""The runtimes that are suspected, and those that they are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.perf.contenders import litert
from litecl.perf.feeds import Runtime, labels, outputs_of, prepare

INTERPRETER, DEVICE, LITERT, LITERT_REFERENCE = "interpreter", "device", "litert", "litert-ref"
_RESOLVERS = {LITERT: "AUTO", LITERT_REFERENCE: "BUILTIN_REF"}

Run = Callable[[Sequence[Array]], list[Array]]
"""Runs a model on the values of its inputs, and returns those of its outputs, in the model's order."""


@dataclass(frozen=True)
class Runner:
    """A runtime by its name: ``interpreter`` (litecl's, without a device), ``litert``, ``litert-ref`` (LiteRT's
    reference kernels), ``device`` (the one that litecl chooses), or a device's name.

    options: keywords of ``CLDelegate``, for devices.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """True if it is a device of litecl's."""
        return self.name not in (INTERPRETER, *_RESOLVERS)

    def load(self, content: bytes, *, preserve: bool = False) -> Runtime:
        """Return the runtime for a model. preserve: whether all tensors can be read. Raises LiteclError."""
        if self.name == INTERPRETER:
            return Interpreter(model_content=content, experimental_preserve_all_tensors=preserve)
        if self.is_device:
            device = None if self.name == DEVICE else self.name
            options = {"strict": True, **self.options}  # what the CPU has run in a device's place would say nothing
            return Interpreter(model_content=content, delegates=[CLDelegate(device=device, **options)])
        try:
            return litert(content, resolver=_RESOLVERS[self.name], preserve=preserve)
        except (ValueError, RuntimeError) as error:
            raise LiteclError(f"{self.name} cannot load the model: {error}") from error

    def prepare(self, content: bytes) -> Run:
        """Return a function that runs a model whose inputs have the shapes that it declares. Raises LiteclError."""
        runtime = self.load(content)
        return lambda values: run(runtime, values, self.name)


def run(runtime: Runtime, values: Sequence[Array], name: str) -> list[Array]:
    """Run a model once. Raises LiteclError."""
    try:
        prepare(runtime, dict(zip(labels(runtime.get_input_details()), values, strict=True)))
        runtime.invoke()
        return outputs_of(runtime)
    except LiteclError:
        raise
    except (ValueError, RuntimeError) as error:  # LiteRT's errors
        raise LiteclError(f"{name} cannot run the model: {error}") from error

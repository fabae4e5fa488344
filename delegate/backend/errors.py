"""Faults common to all back ends: lack of host memory, and loops that do not end."""

from collections.abc import Iterator
from contextlib import contextmanager

from litecl.delegate.plan.steps import Loop
from litecl.interpreter.errors import DelegateError, LiteclError, ModelError, OutOfDeviceMemory, is_refusal


class NoRuntime(DelegateError):
    """Raised when a back end's runtime isn't installed. Callers stay quiet if another one is available."""


def no_host_memory(doing: str) -> OutOfDeviceMemory:
    """Return the error to raise in place of a MemoryError, so that the CPU takes the region. doing: what needed
    memory.
    """
    return OutOfDeviceMemory(f"{doing}: not enough memory on the host")


@contextmanager
def host_memory(doing: str) -> Iterator[None]:
    """Convert MemoryError to OutOfDeviceMemory, and other refusals of the system to DelegateError."""
    try:
        yield
    except MemoryError as error:
        raise no_host_memory(doing) from error
    except (OSError, ImportError) as error:
        if isinstance(error, LiteclError) or not is_refusal(error):
            raise
        raise DelegateError(f"{doing}: {error}") from error


def loop_at(subgraph: int, node: int) -> str:
    """Return a loop's position as text, for errors and reports."""
    return f"WHILE (subgraph {subgraph}, node {node})"


def too_many_iterations(loop: Loop, most: int) -> ModelError:
    """Return the error to raise for a loop past its limit of iterations."""
    return ModelError(f"more than {most} iterations (max_loop_iterations)", operator=loop_at(loop.subgraph, loop.node))

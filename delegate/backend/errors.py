"""Faults that are not of one back end: lack of memory on the host, and loops that do not come to their end."""

from collections.abc import Iterator
from contextlib import contextmanager

from litecl.delegate.plan.steps import Loop
from litecl.interpreter.errors import ModelError, OutOfDeviceMemory


def no_host_memory(doing: str) -> OutOfDeviceMemory:
    """Return what is raised in place of a MemoryError, so that the CPU takes the region. doing: what needed memory."""
    return OutOfDeviceMemory(f"{doing}: not enough memory on the host")


@contextmanager
def host_memory(doing: str) -> Iterator[None]:
    """Raise a MemoryError as OutOfDeviceMemory."""
    try:
        yield
    except MemoryError as error:
        raise no_host_memory(doing) from error


def place(subgraph: int, node: int) -> str:
    """Say which loop."""
    return f"WHILE (subgraph {subgraph}, node {node})"


def too_many_iterations(loop: Loop, most: int) -> ModelError:
    """Return what is raised where a loop does not come to its end."""
    return ModelError(f"{place(loop.subgraph, loop.node)}: more than {most} iterations (max_loop_iterations)")

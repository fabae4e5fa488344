"""The number of threads of numpy's BLAS while a model runs.

BLAS wakes its threads even for products that one would finish sooner, and if they outnumber the free cores they wait
for each other a hundred times as long as they compute. Its setting is global to the process: while several models run
at once the smallest number applies, and when none runs the old setting is restored.
"""

import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Model, Node, TensorSpec, entries, reached

# OpenBLAS maps this much for its first product; if it cannot, it ends the process.
_BLAS_BYTES = 48 << 20

# The least multiplications of one operator that are worth waking more than one thread.
_WORTH_IT = 1 << 24
_NO_LIMIT = 1 << 31

# Operators that multiply matrices by weights in their second operand, whose first dimension is that of the outputs. By
# name: a process imports only the operators of its models.
_PRODUCTS = frozenset(
    {
        "BATCH_MATMUL",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "CONV_2D",
        "CONV_3D",
        "CONV_3D_TRANSPOSE",
        "Convolution2DTransposeBias",
        "FULLY_CONNECTED",
        "LSTM",
        "RNN",
        "TRANSPOSE_CONV",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
    }
)


class _Library:
    """One BLAS of the process, which any thread may set; threadpoolctl allows the first thread only, while it lives."""

    def __init__(self, controller: Any) -> None:
        self.get = controller.get_num_threads
        self.set = getattr(controller, "_real_set_num_threads", controller.set_num_threads)


class _Blas:
    """The setting of the process, and its users' wishes."""

    def __init__(self, libraries: Sequence[_Library]) -> None:
        self._libraries = libraries
        self._start_over()

    def _start_over(self) -> None:
        self._lock = threading.RLock()  # a signal handler may run a model meanwhile, which ends before we go on
        self._wanted: dict[int, int] = {}  # by user
        self._before: list[int] = []
        self._now = _NO_LIMIT

    def enter(self, user: int, count: int) -> None:
        """Limit BLAS to ``count`` threads until ``leave`` is called for the same user.

        A user whom an interrupt kept from leaving leaves after its next entry.
        """
        with self._lock:
            if self._now == _NO_LIMIT and not self._wanted:
                self._before = [library.get() for library in self._libraries]
            self._wanted[user] = count
            if count < self._now:
                self._set(count)

    def leave(self, user: int) -> None:
        """Undo ``enter``."""
        with self._lock:
            if self._wanted.pop(user, None) == self._now:
                self._set(min(self._wanted.values(), default=_NO_LIMIT))

    def _set(self, most: int) -> None:
        for library, before in zip(self._libraries, self._before, strict=True):
            if min(before, most) != min(before, self._now):
                library.set(min(before, most))
        self._now = most

    def forked(self) -> None:
        """Reset in a forked child, where no thread with a wish is running."""
        if self._wanted:
            self._set(_NO_LIMIT)
        self._start_over()


_known: dict[str, _Blas] = {}


def _blas() -> _Blas:
    """Return the only instance of the process; threads may ask for it at the same time."""
    if not _known:
        blas = _Blas([_Library(controller) for controller in _controllers() if controller.user_api == "blas"])
        if _known.setdefault("blas", blas) is blas and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=blas.forked)
    return _known["blas"]


def _controllers() -> list[Any]:
    """Search all libraries of the process with threadpoolctl; models on a device do without."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # a board may have numpy and litecl only: BLAS then takes as many threads as it likes
        return []
    return list(ThreadpoolController().lib_controllers)


class _Limited(AbstractContextManager[None]):
    def __init__(self, count: int) -> None:
        self._count = count
        self._blas = _blas()

    def __enter__(self) -> None:
        self._blas.enter(id(self), self._count)

    def __exit__(self, *error: object) -> None:
        self._blas.leave(id(self))


def limited(model: Model, specs: Sequence[Sequence[TensorSpec]], count: int | None) -> AbstractContextManager[None]:
    """Return a context to run a model in: BLAS uses at most ``count`` threads, and one if products are small.

    model: as rewritten by delegates, whose own nodes need no BLAS. count: None for as many as BLAS has. Raises
    ModelError if there is no memory for BLAS.
    """
    begun = entries(model)
    run = {*begun, *reached(model, [node for i in begun for node in model.subgraphs[i].nodes])}
    largest = max((_multiplications(node, specs[i]) for i in run for node in model.subgraphs[i].nodes), default=0)
    if not largest:
        return nullcontext()
    _require_memory()
    if largest < _WORTH_IT:
        return _Limited(1)
    return nullcontext() if count is None else _Limited(count)


@cache
def _require_memory() -> None:
    try:
        np.empty(_BLAS_BYTES, np.uint8)
    except MemoryError as error:
        raise ModelError(f"numpy's BLAS needs {_BLAS_BYTES >> 20} MiB of address space: {error}") from error


def _multiplications(node: Node, specs: Sequence[TensorSpec]) -> int:
    """Return the multiplications in an operator's matrix products: 0 if it has none, enough for threads if unknown."""
    if node.op.name not in _PRODUCTS or len(node.inputs) < 2 or not node.outputs or ABSENT in node.inputs[:2]:
        return 0
    x, weights, output = specs[node.inputs[0]], specs[node.inputs[1]], specs[node.outputs[0]]
    if x.shape is None or weights.shape is None or output.shape is None:
        return _WORTH_IT
    if node.op.name == "BATCH_MATMUL":
        return output.size * (x.shape[-2] if node.options.adj_x else x.shape[-1])
    return output.size * (weights.size // max(1, *weights.shape[:1]))

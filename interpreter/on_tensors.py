"""The part of an interpreter that runs on device tensors need, and the values that it shows of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from litecl.interpreter.delegation import Delegation
from litecl.interpreter.device_tensor import DeviceTensor
from litecl.interpreter.graph import Array, TensorSpec

Tensors = Mapping[int, DeviceTensor]
ALREADY_RUNNING = "this interpreter is already running: use one interpreter per thread"


class Runs(Protocol):
    """The part of ``Interpreter`` that runs on device tensors need."""

    _delegations: Sequence[Delegation]
    _inputs: dict[int, dict[int, Array]]
    _busy: bool  # a run is in progress

    _values: dict[int, dict[int, Array]]

    @property
    def _may_stop(self) -> bool:
        """Return whether a limit of memory or time may end a run."""

    @property
    def _is_free(self) -> bool:
        """Return whether nothing watches, keeps or limits the nodes of a run."""

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec:
        """Return the spec of a tensor."""

    def _value(self, tensor: int, subgraph: int) -> Array:
        """Return a tensor's value."""

    @property
    def _executor(self) -> object:
        """Return the executor, which changes with the shapes."""

    def _call(self, subgraph: int) -> None:
        """Run a subgraph on its inputs, without taking ``_busy``."""

    def _invoke(self, subgraph: int) -> None:
        """Take ``_busy``, and run a subgraph on its inputs."""

    def _let(self, tensor: int, subgraph: int, value: Array) -> bool:
        """Use an array as an input without a copy; return False if the input lies in a delegate's memory."""

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """Copy a value into an input."""

    def _show(self, subgraph: int, tensors: Tensors) -> None:
        """Make ``get_tensor`` read outputs from tensors."""


class Shown(dict[int, Array]):
    """The values of a run; those in device tensors are read on access."""

    def __init__(self, values: Mapping[int, Array], tensors: Tensors) -> None:
        super().__init__({**values, **dict.fromkeys(tensors, np.empty(0))})
        self._tensors = tensors

    def __getitem__(self, number: int) -> Array:
        return self._tensors[number].read() if number in self._tensors else super().__getitem__(number)

    def get(self, number: int, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        return self[number] if number in self.keys() else default

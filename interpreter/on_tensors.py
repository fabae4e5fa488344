"""The part of an interpreter that runs on tensors which stay on the device need, and what it shows of them."""

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
    """The part of ``Interpreter`` that such a run needs."""

    _delegations: Sequence[Delegation]
    _inputs: dict[int, dict[int, Array]]
    _busy: bool  # somebody runs the model

    _values: dict[int, dict[int, Array]]

    @property
    def _may_stop(self) -> bool:
        """Return whether limits of memory or time may end a run."""

    @property
    def _is_free(self) -> bool:
        """Return whether nobody watches or limits the nodes of a run."""

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec:
        """Return what is known of a tensor."""

    def _value(self, tensor: int, subgraph: int) -> Array:
        """Return a tensor's value."""

    @property
    def _executor(self) -> object:
        """Return what runs the model, another one for other shapes."""

    def _call(self, subgraph: int) -> None:
        """Run a subgraph on its inputs, alone."""

    def _invoke(self, subgraph: int) -> None:
        """Run a subgraph on its inputs."""

    def _let(self, tensor: int, subgraph: int, value: Array) -> bool:
        """Let an input be an array itself; return whether it is now, and not in a delegate's memory."""

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """Copy a value into an input."""

    def _show(self, subgraph: int, tensors: Tensors) -> None:
        """Let ``get_tensor`` find outputs in tensors."""


class Shown(dict[int, Array]):
    """The values of a run, some of which are in tensors: they are read when they are asked for."""

    def __init__(self, values: Mapping[int, Array], tensors: Tensors) -> None:
        super().__init__({**values, **dict.fromkeys(tensors, np.empty(0))})
        self._tensors = tensors

    def __getitem__(self, number: int) -> Array:
        return self._tensors[number].read() if number in self._tensors else super().__getitem__(number)

    def get(self, number: int, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        return self[number] if number in self.keys() else default

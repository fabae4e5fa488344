"""The part of an interpreter that its signatures, and runs on device tensors, need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy.typing as npt

from litecl.interpreter.delegation import Delegation, Moved
from litecl.interpreter.details import TensorDetails
from litecl.interpreter.device_tensor import Tensors
from litecl.interpreter.graph import Array, Model, Shape, TensorSpec

ALREADY_RUNNING = "this interpreter is already running: use one interpreter per thread"


class Runnable(Protocol):
    """An interpreter that runs by tensors and subgraphs. What has no docstring is as in ``Interpreter``."""

    _busy: bool  # a run is in progress
    _again: Callable[[], object] | None  # repeats the last run
    _is_called: bool  # by a signature's name
    _delegations: Sequence[Delegation]
    _preliminary: bool
    _inputs: dict[int, dict[int, Array]]
    _shared: Mapping[int, Mapping[int, Array]]
    _values: dict[int, dict[int, Array]]

    @property
    def model(self) -> Model: ...

    @property
    def _executor(self) -> object:
        """The executor, which changes with the shapes."""

    @property
    def _may_stop(self) -> bool: ...

    @property
    def _is_free(self) -> bool: ...

    def resize_tensor_input(
        self, input_index: int, tensor_size: npt.ArrayLike, strict: bool = False, *, subgraph_index: int = 0
    ) -> None: ...

    def allocate_tensors(self) -> None: ...

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None: ...

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array: ...

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec: ...

    def _shape(self, tensor: int, subgraph: int) -> Shape: ...

    def _details(self, tensor: int, subgraph: int) -> TensorDetails: ...

    def _value(self, tensor: int, subgraph: int) -> Array: ...

    def _copied_inputs(self, subgraph: int) -> set[int]: ...

    def _give(self, tensor: int, value: npt.ArrayLike, subgraph: int) -> None: ...

    def _let(self, tensor: int, subgraph: int, value: Array) -> bool: ...

    def _call(self, subgraph: int) -> None:
        """Run a subgraph on its inputs, without taking ``_busy``."""

    def _invoke(self, subgraph: int) -> None:
        """Take ``_busy``, and run a subgraph on its inputs."""

    def _show(self, subgraph: int, tensors: Tensors) -> None: ...

    def _count(self, moved: Moved) -> None: ...

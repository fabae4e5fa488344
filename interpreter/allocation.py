"""Shapes and memory of an interpreter: resizing, allocating, and taking over other preparations."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import numpy.typing as npt

from litecl.interpreter import arguments, limits
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.errors import ModelError, ShapeError, refusals
from litecl.interpreter.feeding import check_strict, input_of
from litecl.interpreter.graph import Array, Model, Shape
from litecl.interpreter.introspection import Introspection
from litecl.interpreter.op import InPlace
from litecl.interpreter.prepared import Entries, Preparation, Prepared, Shelf
from litecl.interpreter.run.executor import Executor
from litecl.interpreter.run.shapes import Known
from litecl.interpreter.run.variables import Variables


class Allocation(Introspection):
    """The methods that prepare a model for the shapes of its inputs."""

    _model: Model
    _preparation: Preparation
    _shelf: Shelf
    _entries: dict[int, tuple[Shape, ...]]
    _variables: Variables
    _budget: limits.Budget | None
    _specs: Sequence[Known]
    _executor: Executor | None
    _in_place: dict[int, InPlace]  # of entries that one node of a delegate's is all of
    _delegations: Sequence[Delegation]
    _preliminary: bool  # another delegation may take over
    _inputs: dict[int, dict[int, Array]]
    _shared: Mapping[int, Mapping[int, Array]]  # of _inputs, those that lie in a delegate's memory
    _seen: set[tuple[int, int]]  # tensors whose memory a caller may write into, by subgraph and number
    _results: ExitStack
    _busy: bool
    _threads: AbstractContextManager[None]
    _limits_apply: bool

    def resize_tensor_input(
        self, input_index: int, tensor_size: npt.ArrayLike, strict: bool = False, *, subgraph_index: int = 0
    ) -> None:
        """Give an input another shape; call ``allocate_tensors`` afterwards.

        With ``strict`` only the dimensions that the signature leaves open (-1) may change.
        Raises ShapeError for a tensor that is no input, a negative dimension or, if strict, a fixed dimension.
        """
        entries = self._resized(self._entries, input_index, tensor_size, subgraph_index, strict=strict)
        if entries != self._entries:
            self._entries, self._executor, self._in_place = entries, None, {}

    def _resized(
        self, entries: Entries, tensor: int, size: npt.ArrayLike, subgraph: int, *, strict: bool = False
    ) -> dict[int, tuple[Shape, ...]]:
        """Return the shapes of all inputs with another one for one of them."""
        graph = self._graph(subgraph)
        if arguments.index("input_index", tensor) not in graph.inputs:
            raise ShapeError(f"resize: tensor {tensor} is not an input; inputs are {list(graph.inputs)}")
        shape = arguments.shape(size)
        if strict:
            check_strict(graph.tensors[tensor], shape)
        shapes, position = entries[subgraph], graph.inputs.index(tensor)
        return {**entries, subgraph: (*shapes[:position], shape, *shapes[position + 1 :])}

    def allocate_tensors(self) -> None:
        """Propagates shapes, lets the delegates claim their parts and resets variables; a no-op if nothing changed.

        For shapes that it was allocated for before, or that were prepared ahead, only memory changes.
        """
        if self._executor is not None:
            if self._preliminary and not self._busy:
                self._hand_over()
            return
        if self._busy:
            raise ModelError("allocate_tensors: this interpreter is running")
        with refusals("allocate_tensors"):
            self._take(limits.within(self._budget, self._found))

    @property
    def is_allocated(self) -> bool:
        """True if tensors are allocated for the current shapes of the inputs."""
        return self._executor is not None

    def prepare(self, *shapes: Mapping[int | str, npt.ArrayLike], subgraph_index: int = 0) -> None:
        """Prepare the model for other input shapes ahead of time; they stay prepared, and nothing else changes.

        shapes: by an input's index or name; inputs that are not named keep theirs. Raises what ``resize_tensor_input``
        and ``allocate_tensors`` raise, and ModelError with a ``memory_limit``.
        """
        if self._budget is not None and self._budget.memory_bytes is not None:
            raise ModelError("prepare: with a memory_limit only the current shapes are kept")
        for given in shapes:
            entries: Entries = self._entries
            for name, size in given.items():
                tensor = input_of(self._graph(subgraph_index), name)
                entries = self._resized(entries, tensor, size, subgraph_index)
            if not self._shelf.holds_ahead(entries):
                limits.within(self._budget, self._prepared, entries, True)

    def _found(self) -> Prepared:
        return self._shelf.take(self._entries, self._variables) or self._prepared(self._entries)

    def _prepared(self, entries: Entries, ahead: bool = False) -> Prepared:
        if not ahead:
            self._delegations = ()
            self._shelf.make_room()
        prepared = self._preparation.prepare(entries)
        self._shelf.put(entries, prepared)
        return prepared

    def _take(self, prepared: Prepared) -> None:
        """Run what was prepared from now on. Inputs of the same shape keep their values, variables are reset."""
        self._variables.reset()
        self._results, self._values, self._seen = ExitStack(), {}, set()
        self._install(prepared)

    def _install(self, prepared: Prepared) -> None:
        """Change what the next invoke runs: all at once, for nothing is called from the first store on, so that no
        interrupt comes in between.
        """
        inputs, preliminary = prepared.inputs(self._model, self._inputs), prepared.preliminary
        limits_apply = self._budget is not None or not isinstance(prepared.threads, nullcontext)
        self._inputs, self._limits_apply = inputs, limits_apply
        self._specs, self._delegations, self._shared = prepared.specs, prepared.delegations, prepared.shared
        self._threads, self._in_place, self._preliminary = prepared.threads, prepared.in_place, preliminary
        self._executor = prepared.executor

    def _hand_over(self) -> None:
        """Let what has become ready in the background run the model from now on. Nothing changes but where: inputs,
        outputs, variables, and inputs that a caller writes into stay what they are.
        """
        assert self._executor is not None
        prepared = self._preparation.successor(self._entries, self._specs, self._delegations, self._executor)
        if prepared is not None:
            self._shelf.put(self._entries, prepared)
            self._install(prepared.without(self._seen))

    def reset_all_variables(self, *, resources: bool = False) -> None:
        """Set variable tensors (LSTM state) back to zeros.

        resources: ``tf.Variable``s and tables too, to what the model's first run assigns; those that only another
        signature assigns have no value then. LiteRT never resets them: a model may keep its trained weights there.
        """
        self._variables.reset(resources=resources)

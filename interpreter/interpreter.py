"""The public interpreter, a drop-in for ``tf.lite.Interpreter`` and ``ai_edge_litert.interpreter.Interpreter``."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from os import PathLike

import numpy as np
import numpy.typing as npt

from litecl.interpreter import arguments, limits
from litecl.interpreter.allocation import Allocation
from litecl.interpreter.custom import CustomOp, with_custom_ops
from litecl.interpreter.delegation import Delegate, Delegation
from litecl.interpreter.dynamic_range import DynamicRange, quantized_as
from litecl.interpreter.errors import DifferenceWarning, ModelError, refusals
from litecl.interpreter.feeding import blank, checked, entry_shapes, seen
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.lifetime import Lifetime, kept
from litecl.interpreter.on_tensors import ALREADY_RUNNING, OnTensors
from litecl.interpreter.op import InPlace
from litecl.interpreter.overwritten import difference
from litecl.interpreter.prepared import Preparation, Shelf
from litecl.interpreter.resizes import with_one_option
from litecl.interpreter.resolver import OpResolverType, resolver
from litecl.interpreter.run.executor import Executor, Listener
from litecl.interpreter.run.shapes import Known
from litecl.interpreter.run.variables import Variables
from litecl.interpreter.signature import SignatureRunner, only_key

Source = str | PathLike[str] | bytes | bytearray | memoryview | Model


class Interpreter(OnTensors, Allocation, Lifetime):
    """Runs a TensorFlow Lite model. It is closed by ``close()`` or at the end of ``with``, and can be pickled.

    model_path: a path, or the bytes of a file, or a ``Model``.
    model_content: the bytes, under TFLite's name.
    delegates: objects that claim parts of the model, such as ``CLDelegate()`` (``experimental_delegates`` is TFLite's
        name for it).
    custom_ops: custom operators by name: an ``Op``, or a callable that takes the custom options (bytes) and a list of
        arrays and returns a list of arrays.
    experimental_preserve_all_tensors: keep intermediate tensors, also those of subgraphs, for ``get_tensor``.
    memory_limit: the most bytes that values and kernels may take together, for untrusted files. Past it LimitError is
        raised. None: a tensor may take half of the machine's memory.
    time_limit: the most seconds of an ``allocate_tensors`` or ``invoke``, checked between operators, iterations and
        blocks of work. Past it LimitError is raised.
    shapes_kept: the number of sets of input shapes for which the model stays prepared, so that going back to one is
        nearly free; the least recently used are dropped. None: eight, while they take less than 256 MiB together. With
        a ``memory_limit`` only the current set is kept.
    dynamic_range: how products of float activations and integer weights quantize the activations: "reference" is
        LiteRT's reference kernels, bit for bit; "asymmetric" is XNNPACK, LiteRT's default (docs/quantization.md). None
        is "reference", unless a delegate computes otherwise: ``CLDelegate(dynamic_range=...)`` holds for all nodes.
    num_threads: the most threads of numpy's BLAS while the model runs; one if its products are small. None: as many as
        BLAS has. Delegates have their own ``num_threads``.

    experimental_op_resolver_type and the other experimental keywords are accepted for compatibility: there is one set
    of kernels.

    Raises ModelError for a malformed model, ModelFileNotFound for a missing file, ArgumentError for an argument of a
    wrong type, and UnsupportedOp, when tensors are allocated, for an operator that has no kernel. Warns
    (``DifferenceWarning``) of a model that LiteRT computes wrongly.
    """

    def __init__(
        self,
        model_path: Source | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Delegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        delegates: Sequence[Delegate] | None = None,
        custom_ops: Mapping[str, CustomOp] | None = None,
        listeners: Sequence[Listener] = (),
        memory_limit: int | None = None,
        time_limit: float | None = None,
        shapes_kept: int | None = None,
        dynamic_range: DynamicRange | None = None,
    ) -> None:
        self._arguments = kept(locals())
        source = arguments.one_of(model_path, model_content)
        resolver(experimental_op_resolver_type)
        threads, kept_shapes = arguments.count("num_threads", num_threads), arguments.count("shapes_kept", shapes_kept)
        given = arguments.delegates(experimental_delegates, delegates)
        mode = arguments.dynamic_range(dynamic_range, given)
        self._budget = limits.budget(memory_limit, time_limit)
        with refusals("reading a model"):
            self._model = with_custom_ops(read(source), custom_ops or {})
            self._model = quantized_as(with_one_option(self._model), mode)
        if not self._model.subgraphs:
            raise ModelError("the model has no subgraph")
        if differs := difference(self._model):
            warnings.warn(differs, DifferenceWarning, stacklevel=2)
        self._preserve = experimental_preserve_all_tensors
        self._variables = Variables(self._budget)
        self._preparation = Preparation(
            self._model,
            given,
            self._variables,
            self._preserve,
            tuple(listeners),
            self._budget,
            threads,
        )
        self._shelf = Shelf(kept_shapes if memory_limit is None else 0)
        self._entries = entry_shapes(self._model)
        self._specs: tuple[Known, ...] = tuple(graph.tensors for graph in self._model.subgraphs)
        self._executor: Executor | None = None
        self._in_place: dict[int, InPlace] = {}  # of entries that one node of a delegate's is all of
        self._delegations: Sequence[Delegation] = ()
        self._inputs: dict[int, dict[int, Array]] = {}
        self._shared: Mapping[int, Mapping[int, Array]] = {}  # of _inputs, those that lie in a delegate's memory
        self._values: dict[int, dict[int, Array]] = {}
        self._preliminary = False
        self._seen: set[tuple[int, int]] = set()
        self._results = ExitStack()  # counts the outputs of the last invoke, if memory is limited
        self._busy = False
        self._is_called = False  # by a signature's name
        self._threads: AbstractContextManager[None] = nullcontext()
        self._limits_apply = False

    # Running

    def invoke(self) -> None:
        """Run the model on its inputs. Raises ModelError if another thread is running it."""
        place = self._in_place.get(0)
        if place is None or self._busy:
            self._invoke(0)
            return
        self._busy = True  # as in _invoke, without the time that a call takes
        try:
            self._values = place.run()
        except Exception as error:
            self._without_place(0, place, error)
        finally:
            self._busy = False

    def _invoke(self, subgraph: int) -> None:
        place = self._in_place.get(subgraph)
        if self._busy:
            raise ModelError(f"invoke: {ALREADY_RUNNING}")
        self._busy = True  # no other thread can have come in between
        try:
            if place is None:
                self._call(subgraph)
            else:
                self._values = place.run()
        except Exception as error:
            if place is None:
                raise
            self._without_place(subgraph, place, error)
        finally:
            self._busy = False

    def _without_place(self, subgraph: int, place: InPlace, error: Exception) -> None:
        """Run a subgraph node by node, now and later, if that is how its place wants to be seen to."""
        place.failed(error)
        del self._in_place[subgraph]
        self._call(subgraph)

    def _call(self, subgraph: int) -> None:
        """Run a subgraph node by node. Unless all goes well, variables and resources are left as they were."""
        if self._executor is None:
            raise ModelError("the model is not ready: call allocate_tensors() before invoke()")
        if self._preliminary:
            self._hand_over()
        self._variables.begin()
        try:
            values = self._run(subgraph, self._executor)
            self._variables.commit()
            self._values = values  # after the last call: an interrupt finds variables and outputs both old or both new
        except BaseException:
            self._variables.rollback()
            raise

    def _run(self, subgraph: int, executor: Executor) -> dict[int, dict[int, Array]]:
        """Return the values that ``get_tensor`` is to find, by subgraph and tensor."""
        graph = self._model.subgraphs[subgraph]
        inputs = [self._inputs[subgraph][t] for t in graph.inputs]
        results = self._limited_call(subgraph, inputs) if self._limits_apply else executor.call(subgraph, inputs)
        outputs = {t: results[i] for i, t in enumerate(graph.outputs)}
        if self._budget is not None:
            self._results.close()
            self._results = self._counted(outputs)
        kept = executor.values
        return {**kept, subgraph: kept.get(subgraph, {}) | outputs}

    def _limited_call(self, subgraph: int, inputs: Sequence[Array]) -> list[Array]:
        """Run a subgraph within its limits of BLAS threads, memory and time."""
        assert self._executor is not None
        with self._threads, self._counted(dict(enumerate(inputs))):
            return limits.within(self._budget, self._executor.call, subgraph, inputs)

    def _counted(self, values: Mapping[int, Array]) -> ExitStack:
        """Count values as alive until the returned object is closed."""
        stack = ExitStack()
        if self._budget is not None:
            stack.callback(limits.CountedValues(self._budget, values).clear)
        return stack

    # Tensors

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike, *, subgraph_index: int = 0) -> None:
        """Copy a value into an input or a variable tensor. Raises ShapeError unless shape and type fit exactly."""
        if self._executor is None:
            raise ModelError("the model is not ready: call allocate_tensors() before set_tensor()")
        spec = self._spec(tensor_index, subgraph_index)
        try:
            self._set(tensor_index, subgraph_index, spec, checked(tensor_index, spec, value))
        except MemoryError as error:
            raise ModelError(f"set_tensor: tensor {tensor_index} ({spec.name!r}): {error}") from error

    def _copied_inputs(self, subgraph: int) -> set[int]:
        """Return the inputs that a run only copies, so that they may be a caller's own arrays (``_give``)."""
        return {tensor for delegation in self._delegations for tensor in delegation.copied_inputs(subgraph)}

    def _give(self, tensor: int, value: npt.ArrayLike, subgraph: int) -> None:
        """Set an input to an array itself if a run only copies it, else to a copy: for callers that set all inputs
        before every run.
        """
        if tensor in self._copied_inputs(subgraph):
            self._inputs[subgraph][tensor] = checked(tensor, self._spec(tensor, subgraph), value)
        else:
            self.set_tensor(tensor, value, subgraph_index=subgraph)

    def _set(self, tensor_index: int, subgraph_index: int, spec: TensorSpec, array: Array) -> None:
        if tensor_index in self._shared.get(subgraph_index, {}):
            self._shared[subgraph_index][tensor_index][...] = array
        elif tensor_index in self._inputs.get(subgraph_index, {}):
            self._inputs[subgraph_index][tensor_index] = array.copy()
        elif spec.is_variable:
            self._variables.set((subgraph_index, tensor_index), array.copy())
        else:
            raise ModelError(f"set_tensor: tensor {tensor_index} ({spec.name!r}) is neither an input nor a variable")

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return a copy of a tensor's value: outputs, inputs, constants, variables and, if preserved, intermediates."""
        try:
            return np.array(self._value(tensor_index, subgraph_index))
        except MemoryError as error:
            raise ModelError(f"get_tensor: tensor {tensor_index}: {error}") from error

    def tensor(self, tensor_index: int, *, subgraph_index: int = 0) -> Callable[[], Array]:
        """Return a function that returns the tensor's current value without a copy; write into an input through it."""

        def current() -> Array:
            value = self._value(tensor_index, subgraph_index)
            self._seen.add((subgraph_index, tensor_index))
            return value

        return current

    def _value(self, tensor: int, subgraph: int) -> Array:
        spec = self._spec(tensor, subgraph)
        if self._executor is None and spec.data is None:
            raise ModelError(f"tensor {tensor} ({spec.name!r}) has no memory: call allocate_tensors() first")
        for values in (self._inputs.get(subgraph, {}), self._values.get(subgraph, {})):
            if tensor in values:
                return seen(spec, values[tensor])
        if spec.data is not None:
            return seen(spec, spec.data)
        if spec.is_variable:
            return seen(spec, self._variables.get((subgraph, tensor), spec))
        if tensor in self._graph(subgraph).outputs and spec.shape is not None:
            return seen(spec, blank(spec))  # as in TFLite, before the first invoke
        raise ModelError(
            f"tensor {tensor} ({spec.name!r}) has no value: invoke() first, and for an intermediate tensor "
            "construct the interpreter with experimental_preserve_all_tensors=True"
        )

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a callable that takes a signature's inputs by name and returns its outputs by name."""
        return SignatureRunner(self, only_key(self._model) if signature_key is None else signature_key)

"""The public interpreter, a drop-in for ``tf.lite.Interpreter`` and ``ai_edge_litert.interpreter.Interpreter``."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from litecl.interpreter import arguments, limits
from litecl.interpreter.custom import CustomOp, with_custom_ops
from litecl.interpreter.delegation import Delegate, Delegation, Moved, Report
from litecl.interpreter.details import OpDetails, TensorDetails, tensor_details
from litecl.interpreter.device_tensor import Shown, Tensors
from litecl.interpreter.dynamic_range import DynamicRange, quantized_as
from litecl.interpreter.errors import DifferenceWarning, ModelError, ShapeError, refusals
from litecl.interpreter.feeding import blank, check_strict, checked, entry_shapes, input_of, seen
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import ABSENT, Array, Model, Shape, Subgraph, TensorSpec
from litecl.interpreter.numbers import Numbers, computed_as
from litecl.interpreter.op import InPlace
from litecl.interpreter.overwritten import difference
from litecl.interpreter.prepared import Entries, Preparation, Prepared, Shelf
from litecl.interpreter.resizes import with_one_option
from litecl.interpreter.resolver import OpResolverType, resolver
from litecl.interpreter.run.executor import Executor, Listener
from litecl.interpreter.run.shapes import Known
from litecl.interpreter.run.variables import Variables
from litecl.interpreter.runnable import ALREADY_RUNNING

if TYPE_CHECKING:
    from litecl.interpreter.signature import SignatureRunner

_FLAGS = (
    "experimental_preserve_all_tensors",
    "experimental_disable_delegate_clustering",
    "experimental_default_delegate_latest_features",
    "experimental_compress_quantization_zero_points",
    "experimental_disable_delegate_node_fusion",
    "experimental_force_delegate_node_profiling",
)
Source = str | PathLike[str] | bytes | bytearray | memoryview | Model


class Interpreter:
    """Runs a TensorFlow Lite model. ``close()`` or the end of ``with`` closes it, and it can be pickled.

    model_path: a path, the bytes of a file, or a ``Model``.
    model_content: the bytes, under TFLite's name.
    delegates: objects that claim parts of the model, such as ``CLDelegate()``; TFLite's name is
        ``experimental_delegates``.
    custom_ops: custom operators by name: an ``Op``, or a callable that takes the custom options (bytes) and a list of
        arrays and returns a list of arrays.
    experimental_preserve_all_tensors: keep intermediate tensors, also those of subgraphs, for ``get_tensor``.
    memory_limit: the most bytes that values and kernels may take together, for untrusted files; more raises
        LimitError. None: a tensor may take half of the machine's memory.
    time_limit: the most seconds of an ``allocate_tensors`` or ``invoke``, checked between operators, iterations and
        blocks of work; more raises LimitError.
    shapes_kept: the number of input shape sets for which the model stays prepared, so that returning to one is nearly
        free; the least recently used are dropped. None: eight, while they take less than 256 MiB together. With a
        ``memory_limit`` only the current set is kept.
    dynamic_range: how products of float activations and integer weights quantize the activations: "reference" is
        LiteRT's reference kernels, bit for bit; "asymmetric" is XNNPACK, LiteRT's default (docs/quantization.md). None
        is "reference", unless a delegate computes otherwise: ``CLDelegate(dynamic_range=...)`` applies to all nodes.
    numbers: whose bits integer operators compute where runtimes differ: "reference" is LiteRT's reference kernels,
        "tflm" tflite-micro's (docs/differences.md). Nodes that differ stay on the CPU.
    num_threads: the most threads of numpy's BLAS while the model runs; one if its products are small. None: as many as
        BLAS has. Delegates have their own ``num_threads``.

    experimental_op_resolver_type and the other experimental keywords are accepted for compatibility: there is one set
    of kernels.

    Raises ModelError for a malformed model, ModelFileNotFound for a missing file, ArgumentError for an argument of a
    wrong type, and UnsupportedOp, when tensors are allocated, for an operator without a kernel. Warns
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
        numbers: Numbers = "reference",
    ) -> None:
        self._arguments = _kept(locals())
        source = arguments.one_of(model_path, model_content)
        resolver(experimental_op_resolver_type)
        threads, kept_shapes = arguments.count("num_threads", num_threads), arguments.count("shapes_kept", shapes_kept)
        given = arguments.delegates(experimental_delegates, delegates)
        mode = arguments.dynamic_range(dynamic_range, given)
        self._budget = limits.budget(memory_limit, time_limit)
        with refusals("reading a model"):
            self._model = with_custom_ops(read(source), custom_ops or {})
            self._model = computed_as(quantized_as(with_one_option(self._model), mode), numbers)
        if not self._model.subgraphs:
            raise ModelError("the model has no subgraph")
        if differs := difference(self._model):
            warnings.warn(differs, DifferenceWarning, stacklevel=2)
        flags = {name: arguments.flag(name, self._arguments[name]) for name in _FLAGS}
        self._preserve = flags["experimental_preserve_all_tensors"]
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
        self._in_place: dict[int, InPlace] = {}  # by entry that consists of one delegate's node
        self._again: Callable[[], object] | None = None  # that of entry 0, if its run was the last
        self._delegations: Sequence[Delegation] = ()
        self._inputs: dict[int, dict[int, Array]] = {}
        self._shared: Mapping[int, Mapping[int, Array]] = {}  # the arrays of _inputs in a delegate's memory
        self._values: dict[int, dict[int, Array]] = {}
        self._preliminary = False
        self._seen: set[tuple[int, int]] = set()
        self._results = ExitStack()  # counts the outputs of the last invoke, if memory is limited
        self._busy = False
        self._is_called = False  # by a signature's name
        self._threads: AbstractContextManager[None] = nullcontext()
        self._limits_apply = False

    # Descriptions

    def __repr__(self) -> str:
        kind = type(self).__name__
        if "_executor" not in self.__dict__:
            return f"<{kind}: closed>"
        report = self.delegation_report() if self._delegations else None
        from litecl.interpreter.shown import state

        progress = state(len(self._model.subgraphs[0].nodes), report, allocated=self._executor is not None)
        return f"<{kind} of {self._tensors_line()}; {progress}>"

    def _repr_html_(self) -> str:
        """Return inputs, outputs and the delegate's report as HTML for notebooks."""
        from litecl.interpreter.html import paragraph
        from litecl.interpreter.shown import html, source_name

        if "_executor" not in self.__dict__:
            return paragraph(repr(self))
        report = self.delegation_report() if self._delegations else None
        title = f"{type(self).__name__} of {source_name(self._arguments)}"
        return html(title, self.get_input_details(), self.get_output_details(), report)

    def _tensors_line(self) -> str:
        from litecl.interpreter.shown import line, source_name

        return f"{source_name(self._arguments)}: {line(self.get_input_details(), self.get_output_details())}"

    @property
    def model(self) -> Model:
        """The model as loaded."""
        return self._model

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._model.subgraphs)

    def get_input_details(self) -> list[TensorDetails]:
        """Return name, index, shape, shape signature, dtype and quantization of every input, in TFLite's dictionaries.

        ``resize_tensor_input`` changes the shape at once.
        """
        return [self._details(t) for t in self._model.subgraphs[0].inputs]

    def get_output_details(self) -> list[TensorDetails]:
        """Return the same for every output; an unknown shape is the declared one until a run determines it."""
        return [self._details(t) for t in self._model.subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[TensorDetails]:
        """Return the same for every tensor of a subgraph. Raises ModelError if the subgraph does not exist."""
        graph = self._graph(subgraph_index)
        return [self._details(t, subgraph_index) for t in range(len(graph.tensors))]

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs by signature key."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._model.signatures}

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return tensor indices by signature key, "inputs" or "outputs", and name."""
        signatures = sorted(self._model.signatures, key=lambda signature: signature.key)
        return {s.key: {"inputs": _sorted(s.inputs), "outputs": _sorted(s.outputs)} for s in signatures}

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> TensorDetails:
        """Return TFLite's dictionary for one tensor. Raises ModelError if it does not exist."""
        return self._details(arguments.index("tensor_index", tensor_index), subgraph_index)

    def _get_ops_details(self) -> list[OpDetails]:
        """Return a dictionary for every operator of subgraph 0: its name, its tensors and their types."""
        return [self._get_op_details(position) for position in range(len(self._model.subgraphs[0].nodes))]

    def _get_op_details(self, op_index: int) -> OpDetails:
        """Return the dictionary of the operator at a position. Raises ModelError if there is none."""
        nodes, position = self._model.subgraphs[0].nodes, arguments.index("op_index", op_index)
        if not 0 <= position < len(nodes):
            raise ModelError(f"operator {position} out of range for {len(nodes)} operators")
        node = nodes[position]
        inputs, outputs = ([t for t in ts if t != ABSENT] for ts in (node.inputs, node.outputs))
        return {
            "index": position,
            "op_name": node.op.name,
            "inputs": np.array(node.inputs, np.int32),
            "outputs": np.array(node.outputs, np.int32),
            "operand_types": [self._details(t)["dtype"] for t in inputs],
            "result_types": [self._details(t)["dtype"] for t in outputs],
        }

    def delegation_report(self) -> Report:
        """Return the nodes that the delegate claimed, why it left the others, and the counters of the last invoke.

        Raises ModelError if there is no delegate or tensors have not been allocated.
        """
        if not self._delegations:
            raise ModelError("no delegation to report: pass delegates=[...] and call allocate_tensors()")
        return self._delegations[-1].report()

    def _count(self, moved: Moved) -> None:
        """Add the copies of a signature's call to the delegate's report."""
        if self._delegations:
            self._delegations[-1].count(moved)

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument, which has no effect."""
        return bool(self._arguments["experimental_compress_quantization_zero_points"])

    def _graph(self, subgraph: int) -> Subgraph:
        """Return a subgraph. Raises ModelError if it does not exist."""
        graphs, number = self._model.subgraphs, arguments.index("subgraph_index", subgraph)
        if not 0 <= number < len(graphs):
            raise ModelError(f"subgraph {number} out of range for {len(graphs)} subgraphs")
        return graphs[number]

    def _spec(self, tensor: int, subgraph: int) -> TensorSpec:
        """Return the spec of a tensor. Raises ModelError if the tensor does not exist."""
        graph = self._graph(subgraph)
        if not 0 <= arguments.index("tensor_index", tensor) < len(graph.tensors):
            raise ModelError(f"tensor {tensor} out of range for {len(graph.tensors)} tensors")
        return self._specs[subgraph][tensor]

    def _details(self, tensor: int, subgraph: int = 0) -> TensorDetails:
        spec = self._spec(tensor, subgraph)
        return tensor_details(tensor, replace(spec, shape=self._shape(tensor, subgraph)))

    def _shape(self, tensor: int, subgraph: int) -> Shape:
        """Return the shape that a caller asked for, else the value's, else the inferred or the declared one."""
        graph = self._model.subgraphs[subgraph]
        if subgraph in self._entries and tensor in graph.inputs:
            return self._entries[subgraph][graph.inputs.index(tensor)]
        value = self._values.get(subgraph, {}).get(tensor)
        shape = self._specs[subgraph][tensor].shape if value is None else value.shape
        return graph.tensors[tensor].static_shape if shape is None else shape

    # Shapes and memory

    def resize_tensor_input(
        self, input_index: int, tensor_size: npt.ArrayLike, strict: bool = False, *, subgraph_index: int = 0
    ) -> None:
        """Change an input's shape; call ``allocate_tensors`` afterwards.

        With ``strict`` only the dimensions that the signature leaves open (-1) may change.
        Raises ShapeError for a tensor that is no input, a negative dimension or, if strict, a fixed dimension.
        """
        is_strict = arguments.flag("strict", strict)
        entries = self._resized(self._entries, input_index, tensor_size, subgraph_index, strict=is_strict)
        if entries != self._entries:
            self._entries, self._executor, self._in_place, self._again = entries, None, {}, None

    def _resized(
        self, entries: Entries, tensor: int, size: npt.ArrayLike, subgraph: int, *, strict: bool = False
    ) -> dict[int, tuple[Shape, ...]]:
        """Return all input shapes, with one of them replaced."""
        graph = self._graph(subgraph)
        if arguments.index("input_index", tensor) not in graph.inputs:
            raise ShapeError(f"resize: tensor {tensor} is not an input; inputs are {list(graph.inputs)}")
        shape = arguments.shape(size)
        if strict:
            check_strict(graph.tensors[tensor], shape)
        shapes, position = entries[subgraph], graph.inputs.index(tensor)
        return {**entries, subgraph: (*shapes[:position], shape, *shapes[position + 1 :])}

    def allocate_tensors(self) -> None:
        """Propagate shapes, let the delegates claim their parts and reset variables; a no-op if nothing changed.

        For shapes that were allocated or prepared before, it only switches memory.
        """
        if self._executor is not None:
            if self._preliminary and not self._busy:
                self._hand_over()
            return
        if self._busy:
            raise ModelError("allocate_tensors: this interpreter is running")
        with refusals("allocate_tensors"):
            self._take(limits.within(self._budget, self._kept_or_prepared))

    @property
    def is_allocated(self) -> bool:
        """True if tensors are allocated for the current input shapes."""
        return self._executor is not None

    def prepare(self, *shapes: Mapping[int | str, npt.ArrayLike], subgraph_index: int = 0) -> None:
        """Prepare the model for other input shapes ahead of time, and keep it prepared; nothing else changes.

        shapes: by an input's index or name; inputs left out keep theirs. Raises what ``resize_tensor_input``
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

    def _kept_or_prepared(self) -> Prepared:
        return self._shelf.take(self._entries, self._variables) or self._prepared(self._entries)

    def _prepared(self, entries: Entries, ahead: bool = False) -> Prepared:
        if not ahead:
            self._delegations = ()
            self._shelf.make_room()
        prepared = self._preparation.prepare(entries)
        self._shelf.put(entries, prepared)
        return prepared

    def _take(self, prepared: Prepared) -> None:
        """Switch to a prepared model. Inputs of the same shape keep their values; variables are reset."""
        self._variables.reset()
        self._results, self._values, self._seen = ExitStack(), {}, set()
        self._install(prepared)

    def _install(self, prepared: Prepared) -> None:
        """Change what the next invoke runs, all at once: no call follows the first store, so that no interrupt can come
        in between.
        """
        inputs, preliminary = prepared.inputs(self._model, self._inputs), prepared.preliminary
        limits_apply = self._budget is not None or not isinstance(prepared.threads, nullcontext)
        self._inputs, self._limits_apply = inputs, limits_apply
        self._specs, self._delegations, self._shared = prepared.specs, prepared.delegations, prepared.shared
        self._threads, self._in_place, self._preliminary = prepared.threads, prepared.in_place, preliminary
        self._again = None
        self._executor = prepared.executor

    def _hand_over(self) -> None:
        """Let a successor that became ready in the background run the model from now on. Inputs, outputs, variables and
        the inputs that a caller writes into stay the same.
        """
        assert self._executor is not None
        prepared = self._preparation.successor(self._entries, self._specs, self._delegations, self._executor)
        if prepared is not None:
            self._shelf.put(self._entries, prepared)
            self._install(prepared.without(self._seen))

    def reset_all_variables(self, *, resources: bool = False) -> None:
        """Reset variable tensors (LSTM state) to zeros.

        resources: reset ``tf.Variable``s and tables too, to what the model's first run assigns; those that only another
        signature assigns then have no value. LiteRT never resets them: a model may keep its trained weights there.
        """
        self._variables.reset(resources=arguments.flag("resources", resources))

    # Running

    def invoke(self) -> None:
        """Run the model on its inputs. Raises ModelError if another thread is running it."""
        again = self._again
        if again is None or self._busy:
            self._invoke(0)
            return
        self._busy = True  # no other thread runs between the check and this
        try:
            again()
        finally:
            self._busy = False

    def _invoke(self, subgraph: int) -> None:
        fast = self._in_place.get(subgraph)
        if self._busy:
            raise ModelError(f"invoke: {ALREADY_RUNNING}")
        self._busy, self._again = True, None  # as above
        try:
            if fast is None:
                self._call(subgraph)
            else:
                self._values = fast.run()
                self._again = None if subgraph else fast.again
        except Exception as error:
            if fast is None:
                raise
            self._without_fast_path(subgraph, fast, error)
        finally:
            self._busy = False

    def _without_fast_path(self, subgraph: int, fast: InPlace, error: Exception) -> None:
        """Pass an error to its fast path, which may raise it; else run node by node, from now on."""
        fast.failed(error)
        del self._in_place[subgraph]
        self._call(subgraph)

    def _call(self, subgraph: int) -> None:
        """Run a subgraph node by node. If it fails, variables and resources keep their old values."""
        if self._executor is None:
            raise ModelError("the model is not ready: call allocate_tensors() before invoke()")
        if self._preliminary:
            self._hand_over()
        self._variables.begin()
        try:
            values = self._run(subgraph, self._executor)
            self._variables.commit()
            self._values = values  # no call follows: an interrupt sees variables and outputs both old or both new
        except BaseException:
            self._variables.rollback()
            raise

    def _run(self, subgraph: int, executor: Executor) -> dict[int, dict[int, Array]]:
        """Run a subgraph; return the values for ``get_tensor``, by subgraph and tensor."""
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
        """Run a subgraph within the limits of BLAS threads, memory and time."""
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
        """Copy a value into an input or a variable tensor. Raises ShapeError unless shape and type match exactly."""
        if self._executor is None:
            raise ModelError("the model is not ready: call allocate_tensors() before set_tensor()")
        spec = self._spec(tensor_index, subgraph_index)
        try:
            self._set(tensor_index, subgraph_index, spec, checked(tensor_index, spec, value))
        except MemoryError as error:
            raise ModelError(f"set_tensor: tensor {tensor_index} ({spec.name!r}): {error}") from error

    def _copied_inputs(self, subgraph: int) -> set[int]:
        """Return the inputs that a run only copies, which may thus be a caller's own arrays (``_give``)."""
        return {tensor for delegation in self._delegations for tensor in delegation.copied_inputs(subgraph)}

    def _give(self, tensor: int, value: npt.ArrayLike, subgraph: int) -> None:
        """Set an input, without a copy if a run only copies it: for callers that set all inputs before every run."""
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
        """Return a function that returns the tensor's current value without a copy; callers may write into inputs."""

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

    def get_signature_runner(self, signature_key: str | None = None) -> "SignatureRunner":
        """Return a callable that takes a signature's inputs by name and returns its outputs by name."""
        from litecl.interpreter.signature import SignatureRunner, only_key

        return SignatureRunner(self, only_key(self._model) if signature_key is None else signature_key)

    # Runs on tensors that stay on the device (``Runnable``)

    def _let(self, tensor: int, subgraph: int, value: Array) -> bool:
        """Use an array as an input without a copy; return False if the input lies in a delegate's memory."""
        if tensor in self._shared.get(subgraph, {}):
            return False
        self._inputs[subgraph][tensor] = value.view(self._spec(tensor, subgraph).dtype)
        return True

    @property
    def _may_stop(self) -> bool:
        """Return whether a limit of memory or time may end a run."""
        return self._budget is not None

    @property
    def _is_free(self) -> bool:
        """Return whether nothing watches, keeps or limits the nodes of a run."""
        return not (self._limits_apply or self._preserve or self._preparation.listeners)

    def _show(self, subgraph: int, tensors: Tensors) -> None:
        """Make ``get_tensor`` read outputs of the last run from tensors."""
        self._values = {**self._values, subgraph: Shown(self._values[subgraph], tensors)}

    # Closing and pickling

    def close(self) -> None:
        """Release the model, its tensors and the memory of its delegates; any later use raises ModelError.

        Arrays that ``tensor()`` returned keep their memory. Raises ModelError if another thread is running the model.
        """
        if self.__dict__.get("_busy") or self.__dict__.get("_is_called"):
            raise ModelError("close: this interpreter is running")
        if self.__dict__:
            self.__dict__.clear()
            self.__class__ = _closed(type(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments and the input shapes, but no values that were set, computed or kept in
        variables.

        Unpickling reads a model given by its path from there. Raises ModelError for one given as a ``Model``.
        """
        if any(isinstance(value, Model) for value in self._arguments.values()):
            raise ModelError(
                "an interpreter of a Model cannot be pickled: construct it from a path or the bytes of a file"
            )
        return _made_again, (
            type(self),
            self._arguments,
            dict(self._entries),
            getattr(self, "_executor", None) is not None,
        )


def _closed(kind: type[Any]) -> type[Any]:
    """Return the class of a closed interpreter. A class with ``__getattr__`` reads all attributes slowly."""

    def missing(self: object, name: str) -> Any:
        raise ModelError("this interpreter is closed")

    return type(kind.__name__, (kind,), {"__getattr__": missing, "__module__": kind.__module__})


def _kept(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a constructor's ``locals()`` as keywords that recreate it in another process: paths are absolute."""
    given = {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
    path = given["model_path"]
    if isinstance(path, str | os.PathLike) and path:
        given["model_path"] = str(Path(path).absolute())
    return given


def _made_again(
    kind: Callable[..., Any], arguments: Mapping[str, Any], entries: Mapping[int, tuple[Shape, ...]], allocated: bool
) -> Any:
    interpreter = kind(**arguments)
    for subgraph, shapes in entries.items():
        tensors = interpreter.model.subgraphs[subgraph].inputs
        for tensor, shape in zip(tensors, shapes, strict=True):
            interpreter.resize_tensor_input(tensor, shape, subgraph_index=subgraph)
    if allocated:
        interpreter.allocate_tensors()
    return interpreter


def _sorted(names: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(names.items()))

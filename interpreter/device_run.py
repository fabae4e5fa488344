"""Runs of a signature with inputs or outputs in tensors that stay on the device."""

from collections import deque
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain, combinations, starmap
from typing import Any

import numpy as np

from litecl.interpreter.buffers import Buffer, HostBuffer, seen
from litecl.interpreter.device_tensor import DeviceTensor, Tensors, alone
from litecl.interpreter.errors import ContentLost, DelegateError, ModelError, ShapeError
from litecl.interpreter.feeding import seen_dtype
from litecl.interpreter.graph import Array
from litecl.interpreter.op import InPlace
from litecl.interpreter.runnable import ALREADY_RUNNING, Runnable

_NOTHING: Mapping[int, Buffer] = {}
_SMALL_BYTES = 1 << 16


class DeviceRun:
    """Runs of a subgraph on fixed tensors. inputs, outputs: those that stay on the device, by number.

    If only a device fault can end a run early, it writes outputs to their tensors' memory. Otherwise it writes to spare
    memory, which replaces the tensors' own after success. moved: the bytes that the host copied in, out and between
    tensors in the last run.
    """

    def __init__(self, interpreter: Runnable, subgraph: int, inputs: Tensors, outputs: Tensors) -> None:
        self.interpreter, self.subgraph = interpreter, subgraph
        self.inputs, self.outputs = inputs, outputs
        self.moved = [0, 0, 0]
        self._tensors = [*{id(tensor): tensor for tensor in (*inputs.values(), *outputs.values())}.values()]
        self._prepared_for: list[object] = []
        self._targets: Mapping[int, Buffer] = {}
        self._buffers: Mapping[int, Buffer] = {}
        self._swapped: list[DeviceTensor] = []
        self._copied: list[tuple[Any, Any]] = []
        self._copied_bytes = 0
        self._quick: InPlace | None = None

    def run(self, wanted: Collection[int] = ()) -> dict[int, Array]:
        """Run; return copies, taken before the run, of inputs that are wanted as outputs too.

        Raises ModelError for tensors that don't fit, and an invoke's errors. Tensors then keep their values, except
        those that a device was overwriting when it failed.
        """
        interpreter = self.interpreter
        if interpreter._busy:
            raise ModelError(ALREADY_RUNNING)
        interpreter._busy, interpreter._again = True, None  # no other thread runs between the check and this
        try:
            passed = alone(self._tensors, partial(self._run_alone, wanted))
        finally:
            interpreter._busy = False
        interpreter._show(self.subgraph, self.outputs)
        return passed

    def _run_alone(self, wanted: Collection[int]) -> dict[int, Array]:
        self.moved = [0, 0, 0]
        for tensor in self.inputs.values():
            tensor.require_content()
        if self._prepared_for != self._state():
            self._prepare()
        passed = {number: self._read(tensor) for number, tensor in self.inputs.items() if number in wanted}
        try:
            self._run()
        except BaseException as error:
            self._lose(error)
            raise
        finally:
            for delegation in self.interpreter._delegations:
                delegation.use(self.subgraph, _NOTHING)
        self._commit()
        return passed

    def _state(self) -> list[object]:
        """Return the state that a preparation depends on: the executor, and the tensors' memory."""
        return [self.interpreter._executor, *(tensor._memory for tensor in self._tensors)]

    def _prepare(self) -> None:
        """Choose where tensors are read and written."""
        self._check()
        self._settle()
        self._targets = targets = self._chosen_targets()
        buffers = {tensor: x.memory for tensor, x in self.inputs.items() if tensor not in self.outputs}
        self._buffers = buffers | {tensor: x for tensor, x in targets.items() if tensor not in self.inputs}
        spare = [(x, target) for n, target in targets.items() if target is (x := self.outputs[n])._spare]
        self._swapped = [x for x, target in spare if target.host is None or x.nbytes >= _SMALL_BYTES]
        copied = [(x, target) for x, target in spare if x not in self._swapped]
        self._copied = [(x.memory.host, target.host) for x, target in copied]
        self._copied_bytes = sum(x.nbytes for x, _ in copied)
        self._prepared_for, self._quick = self._state(), None

    def _run(self) -> None:
        used = {t for d in self.interpreter._delegations for t in d.use(self.subgraph, self._buffers)}
        if self._quick is None:
            self._run_on(used)
            return
        try:
            self.interpreter._values = self._quick.run()
        except Exception as error:
            self._quick = None
            if not self._overwrites:
                self._run_on(used)
                return
            raise ContentLost(f"tensors that were being written over are lost: {error}") from error

    @property
    def _overwrites(self) -> bool:
        """Return whether a run writes over an input."""
        read = [tensor.memory for tensor in self.inputs.values()]
        return any(target in read for target in self._targets.values())

    def _run_on(self, used: Collection[int]) -> None:
        """Run node by node. used: the tensors that need no copy."""
        interpreter, subgraph, targets = self.interpreter, self.subgraph, self._targets
        fed = [tensor for tensor in self.inputs if tensor not in used]
        taken = [tensor for tensor in self.outputs if tensor not in used or tensor not in targets]
        before = {tensor: interpreter._inputs[subgraph][tensor] for tensor in fed}
        try:
            for tensor in fed:
                self._feed(tensor, self.inputs[tensor])
            interpreter._call(subgraph)
            for tensor in taken:
                self._collect(tensor, self.outputs[tensor], targets.get(tensor, self.outputs[tensor].memory))
        finally:
            for tensor, value in before.items():
                interpreter._let(tensor, subgraph, value)
        if not fed and not taken and len(interpreter._delegations) == 1 and interpreter._is_free:
            self._quick = interpreter._delegations[0].quick(subgraph, interpreter._inputs[subgraph])

    def _check(self) -> None:
        """Raise ShapeError for tensors of another type or shape, ModelError for closed or conflicting ones."""
        for kind, tensors in (("input", self.inputs), ("output", self.outputs)):
            for number, tensor in tensors.items():
                spec = self.interpreter._spec(number, self.subgraph)
                wanted, got = (spec.shape, seen_dtype(spec)), (tensor.shape, tensor.dtype)
                if wanted[1] != got[1] or wanted[0] not in (got[0], None):
                    shape = "[unknown]" if spec.shape is None else [*spec.shape]
                    raise ShapeError(
                        f"{kind} {spec.name!r}: expected a DeviceTensor of {wanted[1]}{shape}, got {got[1]}{[*got[0]]}"
                    )
                assert tensor.memory  # raises ModelError if closed
        if len({id(tensor) for tensor in self.outputs.values()}) < len(self.outputs):
            raise ModelError("two outputs share memory: expected a DeviceTensor of its own for each")
        self._check_users()

    def _check_users(self) -> None:
        """Raise ModelError if an output shares memory that a caller allocated with another tensor."""
        given = [*self.outputs.items(), *self.inputs.items()]
        users = [(number, tensor) for number, tensor in given if tensor.is_users]
        for (one, first), (other, second) in combinations(users, 2):
            written = one in self.outputs or other in self.outputs
            if written and not _is_same(first, second) and first.memory.overlaps(second.memory):
                names = [self.interpreter._spec(number, self.subgraph).name for number in (one, other)]
                raise ModelError(f"{names[0]!r} and {names[1]!r} share memory, and one of them is written")

    def _settle(self) -> None:
        """Move tensors from the host to the device, once it has memory of its own."""
        for tensor in self._tensors:
            memory = tensor.memory
            if any(delegation.takes(memory) for delegation in self.interpreter._delegations):
                continue
            if isinstance(memory, HostBuffer) and (moved := self._allocated(tensor)) is not None:
                moved.write(seen(memory, np.empty(tensor.shape, tensor.dtype)))
                tensor._memory, tensor._spare = moved, None
                self.moved[0] += tensor.nbytes

    def _allocated(self, tensor: DeviceTensor) -> Buffer | None:
        """Allocate memory on the device; return None if that is the host's."""
        buffers = (delegation.new_buffer(tensor.nbytes) for delegation in self.interpreter._delegations)
        return next((buffer for buffer in buffers if buffer is not None and not isinstance(buffer, HostBuffer)), None)

    def _chosen_targets(self) -> dict[int, Buffer]:
        """Choose where to write outputs, to their own or spare memory; those left out are copied later."""
        delegations, may_stop = self.interpreter._delegations, self.interpreter._may_stop
        updates = delegations[0].updates(self.subgraph) if len(delegations) == 1 and not may_stop else None
        readers: dict[Buffer, list[int]] = {}
        for number, tensor in self.inputs.items():
            readers.setdefault(tensor.memory, []).append(number)
        targets: dict[int, Buffer] = {}
        for number, tensor in self.outputs.items():
            updated = [(updates or {}).get(number)]
            is_free = readers.get(tensor.memory, updated) == updated
            if is_free and (updates is not None or tensor.is_users):
                targets[number] = tensor.memory
            elif not tensor.is_users:
                tensor._spare = tensor._spare or self._allocated(tensor) or HostBuffer(tensor.nbytes)
                targets[number] = tensor._spare
        return targets

    def _feed(self, number: int, tensor: DeviceTensor) -> None:
        """Give an input to CPU nodes or several regions: without a copy if the host sees its memory."""
        if tensor.memory.host is not None:
            value = seen(tensor.memory, np.empty(tensor.shape, tensor.dtype))
        else:
            value = self._read(tensor)
            self.moved[0] += value.nbytes
        if not self.interpreter._let(number, self.subgraph, value):
            self.interpreter.set_tensor(number, value, subgraph_index=self.subgraph)
            self.moved[0] += value.nbytes

    def _read(self, tensor: DeviceTensor) -> Array:
        value: Array = np.empty(tensor.shape, tensor.dtype)
        tensor.memory.read(value)
        return value

    def _collect(self, number: int, tensor: DeviceTensor, target: Buffer) -> None:
        """Copy an output from the interpreter to its target."""
        value = self.interpreter._value(number, self.subgraph)
        if value.shape != tensor.shape:
            name = self.interpreter._spec(number, self.subgraph).name
            raise ShapeError(f"output {name!r}: expected a DeviceTensor of {[*value.shape]}, got {[*tensor.shape]}")
        target.write(value)
        self.moved[1] += value.nbytes

    def _commit(self) -> None:
        """Move results in spare memory into their tensors, all or none: numpy's and Python's C code does it
        alone, which no interrupt splits. Small results are copied, so that the next run finds all memory unchanged.
        """
        for tensor in self.outputs.values():
            tensor._is_lost = False
        self.moved[2] = self._copied_bytes
        if not self._swapped and not self._copied:
            return
        pairs = [{"_memory": tensor._spare, "_spare": tensor._memory} for tensor in self._swapped]
        swaps = map(dict.update, map(vars, self._swapped), pairs)
        deque[object](chain(starmap(np.copyto, self._copied), swaps), maxlen=0)

    def _lose(self, error: BaseException) -> None:
        """Mark tensors whose memory a failed run may have written."""
        for number, target in self._targets.items():
            tensor = self.outputs[number]
            if target is tensor.memory:
                is_input = any(_is_same(tensor, given) for given in self.inputs.values())
                tensor._is_lost |= _may_be_lost(target, is_input, error)


def _may_be_lost(target: Buffer, is_input: bool, error: BaseException) -> bool:
    """Return whether a failed run may have written part of a buffer. No interrupt splits a run in host memory."""
    if isinstance(error, Exception):
        return isinstance(error, ContentLost if is_input else DelegateError)
    return not isinstance(target, HostBuffer)


def _is_same(one: DeviceTensor, other: DeviceTensor) -> bool:
    return one is other or one.memory == other.memory

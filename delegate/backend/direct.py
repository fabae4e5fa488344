"""Runs a region whose arrays alias the device's memory: only kernels run, without copies."""

from collections.abc import Callable, Collection, Mapping, Sequence

from litecl.delegate.backend.program import Program
from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.report import Counters
from litecl.interpreter.graph import Array
from litecl.interpreter.run.variables import Variables

Values = dict[int, dict[int, Array]]
"""Arrays by subgraph and tensor."""


class Direct:
    """Runs a program, in the shortest way known so far (``InPlace``).

    first: until the program is saved, a full run, which also measures the cost of every run. guarded: then only
    kernels, which may fail, under the program's lock, after restoring states. alone: once the execution has a function
    that cannot fail, just that; with states, only while nobody else has stored any.

    initialise: gives variables without a value their first. failed, again: see ``InPlace``.
    """

    def __init__(
        self,
        program: Program,
        run_plan: AtOnce,
        values: dict[int, Array],
        variables: Variables,
        counters: Counters,
        initialise: Callable[[], None] | None,
        failed: Callable[[Exception], None],
    ) -> None:
        self.failed = failed
        self.again: Callable[[], object] | None = None
        self._program, self._run_plan, self._initialise = program, run_plan, initialise
        self._values: Values = {program.plan.region.subgraph: values}
        self._kept = program.kept & values.keys()  # their memory is not lent, so they are copied
        self._variables, self._counters, self._states = variables, counters, program.states
        self._number = -1 - program.partition  # differs from the executor's invoke numbers
        self._cost = Counters(invocation=self._number)
        self._has_states = bool(program.states)

    def costs(self, counters: Counters) -> None:
        """Copy the cost of every run from the counters of an earlier one."""
        vars(self._cost).update({**vars(counters), "invocation": self._number})

    def run(self) -> Values:
        """Run the program and return the outputs, which may be the same objects each time."""
        if self._program.saved:
            self._guarded()
        else:
            self._first()
        outcome = _copied(self._values, self._kept) if self._kept else self._values
        if self._has_states:
            self._states.keep(self._variables)  # last of all, as in ``Program.run``
        return outcome

    def _first(self) -> None:
        if self._initialise is not None:
            self._initialise()
        counters, cost = self._counters, self._cost
        vars(counters).update(vars(Counters(invocation=self._number)))
        self._program.copied = ()
        self._program.run_without_keeping(self._program.inputs, self._variables, counters)
        cost.kernel_launches, cost.host_syncs = counters.kernel_launches, counters.host_syncs
        cost.bytes_to_host = counters.bytes_to_host

    def _guarded(self) -> None:
        counters = self._counters
        if counters.invocation != self._number or counters.bytes_to_device != self._cost.bytes_to_device:
            self._count()
        self._program.copied = ()
        with self._program.lock:
            try:
                if self._initialise is not None:  # variables may have been reset
                    self._initialise()
                if self._has_states:
                    self._states.restore(self._variables, counters)
                faster = self._run_plan()
            except BaseException as error:
                self._program.abandon(error)
        if faster is not None:
            self._run_plan = faster.run
            if faster.alone and not self._program.timed and not (self._has_states and faster.turns is None):
                run = self._alone() if faster.turns is None else self._turning(faster.turns)
                self.run = run  # type: ignore[method-assign]

    def _alone(self) -> Callable[[], Values]:
        """Return a replacement for ``run`` without attribute lookups, and note what repeats it."""
        run_plan, counters, number = self._run_plan, self._counters, self._number
        values, kept, cost = self._values, self._kept, vars(self._cost)
        self.again = None if kept else run_plan

        def run() -> Values:
            if counters.invocation != number:
                vars(counters).update(cost)
            run_plan()
            return values

        def copied() -> Values:
            return _copied(run(), kept)

        return copied if kept else run

    def _turning(self, turns: tuple[AtOnce, AtOnce]) -> Callable[[], Values]:
        """Return the same for a program with states, which others may change between runs."""
        counters, number, values, kept, cost = self._counters, self._number, self._values, self._kept, vars(self._cost)
        states, variables, guarded, sent = self._states, self._variables, self._guarded, self._cost.bytes_to_device

        def run() -> Values:
            if variables.unchanged(states.seen):
                if counters.invocation != number or counters.bytes_to_device != sent:
                    vars(counters).update(cost)
                turns[states.turned]()
            else:
                guarded()
            outcome = _copied(values, kept) if kept else values
            states.keep(variables)  # last of all, as in ``Program.run``
            return outcome

        return run

    def _count(self) -> None:
        """Count the cost of a run, as measured in the first."""
        vars(self._counters).update(vars(self._cost))


def _copied(values: Values, kept: Collection[int]) -> Values:
    """Return the values, with copies of the ``kept`` tensors, whose memory is not lent."""
    return {s: {t: view.copy() if t in kept else view for t, view in of.items()} for s, of in values.items()}


def direct(
    program: Program,
    inputs: Sequence[Array | None],
    outputs: Sequence[int],
    variables: Variables,
    counters: Counters,
    initialise: Callable[[], None] | None,
    failed: Callable[[Exception], None],
) -> Direct | None:
    """Return the direct runs of a program if a run takes nothing but kernels; else None.

    inputs: the arrays that every run reads; outputs: the wanted tensors, copied unless their memory is lent.
    """
    run_plan, views = program.at_once, program.output_memory()
    if run_plan is None or not views.keys() >= {*outputs} or not program.reads(inputs):
        return None
    values = {t: views[t] for t in outputs}
    return Direct(program, run_plan, values, variables, counters, initialise, failed)


def on_buffers(
    program: Program, inputs: Mapping[int, Array], counters: Counters, failed: Callable[[Exception], None]
) -> Direct | None:
    """Return the direct runs of a program on its current buffers, if a run takes nothing but kernels; else None.

    inputs: the arrays of inputs outside buffers. counters: the cost of the last run, which later runs repeat.
    """
    run_plan, views, buffers = program.at_once_on_buffers, program.output_memory(), program.buffers
    region, memory = program.plan.region, program.input_memory()
    read = [t for t in region.inputs if t not in buffers]
    wanted = [t for t in region.outputs if t not in buffers]
    if run_plan is None or program.states or program.timed or not program.saved or program.binding.places.sources:
        return None
    if not views.keys() >= {*wanted} or any(t not in memory or memory[t] is not inputs.get(t) for t in read):
        return None
    direct = Direct(program, run_plan, {t: views[t] for t in wanted}, Variables(), counters, None, failed)
    direct.costs(counters)
    return direct

"""Runs of a region in place: each in the shortest way that is known by then."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.backend.direct import Direct, direct
from litecl.delegate.backend.protocols import Faster
from litecl.delegate.report import Counters
from litecl.interpreter.errors import DelegateError


class States(list[str]):
    """Notes what is asked of them. turned: says which of the places is read."""

    turned, seen = False, 0

    def restore(self, variables: Any, counters: Counters) -> None:
        self.append("restored")

    def keep(self, variables: Any) -> None:
        self.append("kept")
        self.turned = not self.turned


class Built:
    """A program whose runs are noted: in all ways, and by its execution alone."""

    def __init__(
        self, *, states: bool = False, turns: bool = False, timed: bool = False, alone: bool = True, lent: bool = True
    ) -> None:
        self.log: list[str] = []
        self.plan = SimpleNamespace(region=SimpleNamespace(subgraph=2, outputs=(7,)))
        self.partition, self.timed, self.saved = 1, timed, False
        self.states = States(["one"] if states else [])
        self.lock, self.copied = threading.Lock(), (1.0,)
        self.x, self.y = np.zeros(3, np.float32), np.ones(3, np.float32)
        self.inputs, self.kept = [self.x], set() if lent else {7}
        self._alone = alone
        functions = lambda: self.log.append("first order"), lambda: self.log.append("turned")
        self._turns = functions if turns else None
        self.error: Exception | None = None

    def reads(self, inputs: Any) -> bool:
        return inputs[0] is self.x

    def output_memory(self) -> dict[int, Any]:
        return {7: self.y}

    def at_once(self) -> Faster | None:
        assert self.lock.locked()
        self.log.append("guarded")
        if self.error is not None:
            raise self.error
        return Faster(lambda: self.log.append("alone"), self._alone, self._turns)

    def run_without_keeping(self, inputs: Any, variables: Any, counters: Counters) -> None:
        self.log.append("first")
        counters.kernel_launches, counters.host_syncs, counters.bytes_to_host = 4, 1, 12
        self.saved = True

    def abandon(self, error: BaseException) -> None:
        self.log.append("abandoned")
        raise error


def runs(built: Built, counters: Counters, initialise: Any = None) -> Direct:
    made = direct(built, [built.x], (7,), None, counters, initialise, lambda error: None)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_states() -> None:
    """The first run is like any other, the second is guarded, and all after it are the execution's alone.

    Variables may have been reset before a run that is not.
    """
    built, counters = Built(), Counters()
    made = runs(built, counters, lambda: built.log.append("initialised"))
    for _ in range(4):
        assert made.run()[2][7] is built.y
        assert (counters.kernel_launches, counters.host_syncs, counters.bytes_to_host) == (4, 1, 12)
    assert built.log == ["initialised", "first", "initialised", "guarded", "alone", "alone"]
    counters.begin(5)  # something else ran
    made.run()
    assert (counters.kernel_launches, counters.invocation) == (4, -2)


def test_states_change_turns() -> None:
    """Nothing but the function for their order is called, unless somebody else has stored one."""
    built, counters = Built(states=True, turns=True), Counters()
    stored = SimpleNamespace(unchanged=lambda seen: seen == 0)
    made = direct(built, [built.x], (7,), stored, counters, None, lambda error: None)  # type: ignore[arg-type]
    assert made is not None
    for _ in range(4):
        assert made.run()[2][7] is built.y
    assert built.log == ["first", "guarded", "first order", "turned"]
    assert [*built.states] == ["one", "kept", "restored", "kept", "kept", "kept"]
    built.states.seen = 1
    counters.begin(5)  # something else ran, too
    made.run()
    built.states.seen = 0
    counters.bytes_to_device = 8  # of what was stored
    made.run()
    assert built.log[4:] == ["alone", "turned"] and [*built.states][6:] == ["restored", "kept", "kept"]
    assert (counters.kernel_launches, counters.bytes_to_device, counters.invocation) == (4, 0, -2)


@pytest.mark.parametrize("more", [{"states": True}, {"timed": True}, {"alone": False}], ids=str)
def test_what_stays_guarded(more: dict[str, bool]) -> None:
    """States are put in their places, copies are timed no more, and what may fail is watched."""
    built = Built(**more)
    made = runs(built, Counters())
    for _ in range(3):
        made.run()
    assert built.log == ["first", "guarded", "alone"]  # the faster function, under the lock
    assert built.copied == ()
    if built.states:
        assert [*built.states] == ["one", "kept", "restored", "kept", "restored", "kept"]


def test_what_was_built_anew_is_saved() -> None:
    """Buffers of a user's, which a program is built for between two runs."""
    built = Built(alone=False)
    made = runs(built, Counters())
    made.run()
    built.saved = False
    made.run()
    assert built.log == ["first", "first"]


def test_an_error() -> None:
    """The device is waited for, states are not kept, and the lock is free."""
    built = Built(states=True)
    made = runs(built, Counters())
    made.run()
    built.error = DelegateError("lost")
    with pytest.raises(DelegateError, match="lost"):
        made.run()
    assert built.log == ["first", "guarded", "abandoned"]
    assert not built.lock.locked() and [*built.states] == ["one", "kept", "restored"]


def test_memory_that_is_not_lent_is_copied() -> None:
    built = Built(lent=False)
    made = runs(built, Counters())
    for _ in range(3):
        value = made.run()[2][7]
        assert value is not built.y and value.tolist() == built.y.tolist()


def test_what_cannot_be_direct() -> None:
    """Inputs that lie elsewhere, outputs that the host cannot read, and executions that need the host."""
    built = Built()
    arguments: Any = (None, Counters(), None, None)
    assert direct(built, [built.y], (7,), *arguments) is None  # type: ignore[arg-type]
    assert direct(built, [built.x], (8,), *arguments) is None  # type: ignore[arg-type]
    built.at_once = None  # type: ignore[assignment, method-assign]
    assert direct(built, [built.x], (7,), *arguments) is None  # type: ignore[arg-type]

"""Devices in a forked process: those of a runtime work only without threads of their own.

A runtime's threads do not exist in the child, which would wait for them forever. A device that runs kernels in the
calling thread still works, but only if no thread was inside the runtime at the fork: that thread's locks stay locked.
So every user of a runtime holds a lock of its own during calls, and registers here. Users without a runtime register
too, since a lock that another thread of the parent held would stay locked in the child.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import compress
from operator import methodcaller
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from litecl.interpreter.errors import DelegateError

_SETTLE_S = 0.1  # for a runtime's threads to clean up after a run
_TASKS = Path("/proc/self/task")


class Needs(Protocol):
    """A device's needs; see ``Identified`` in delegate/backend/protocols.py."""

    @property
    def needs_runtime(self) -> bool: ...

    @property
    def needs_threads(self) -> bool: ...


class User(Protocol):
    """Holds ``lock`` while at work. needs_runtime: whether it calls a runtime, which has locks of its own.
    needs_threads: whether that runtime has threads of its own, so that the user is lost in a forked child. There,
    taking the lock raises DelegateError.
    """

    lock: Any
    needs_runtime: bool
    needs_threads: bool


class _LostLock:
    """Replaces the lock of a user whose device is lost."""

    def __enter__(self) -> None:
        raise lost_error("this device")

    def __exit__(self, *error: object) -> None:
        return None


class _Process:
    """The runtimes used in this process."""

    def __init__(self) -> None:
        self.users: WeakSet[User] = WeakSet()
        self.lock = threading.RLock()  # of users
        self.opened = False  # whether a runtime has been used
        self.forked = False  # whether this process was forked after that
        self.disturbed = False  # whether a thread was inside a runtime at the fork
        self._users: list[User] = []  # at a fork: all users
        self._taken: list[bool] = []  # whether the fork holds the lock of all users, and then that of each
        self._release: Iterable[None] = ()  # releases these
        self._busy = False

    def before(self) -> None:
        """Take the free locks, so that no call begins until the process has forked.

        Python ignores what is raised here by a signal, and forks. So iterators in C take and release locks, between
        which no signal is handled, and ``in_parent`` may be called again.
        """
        locks, self._taken, self._users, self._busy = [self.lock], [], [], True
        self._release = map(methodcaller("release"), compress(locks, self._taken))
        self._taken.extend(map(methodcaller("acquire"), locks))
        self._users = list(self.users)
        locks += [user.lock for user in self._users]
        self._taken.extend(map(methodcaller("acquire", blocking=False), locks[1:]))
        busy = any(user.needs_runtime for user in {*self._users} - {*self._held()})
        self._busy = busy or (any(user.needs_threads for user in self._users) and not _settled())

    def _held(self) -> list[User]:
        """Return the users that were idle."""
        return [*compress(self._users, self._taken[1:])]

    def in_parent(self) -> None:
        """Release the locks in the parent."""
        deque(self._release, maxlen=0)
        self._users = []

    def in_child(self) -> None:
        """Drop users that cannot work in the child, and replace their locks with ones that raise. A busy ``Section`` is
        not lost: it gets a new lock, and its work is redone.
        """
        self.forked |= self.opened
        self.disturbed |= self.opened and self._busy
        lost = {user for user in self._users if self.lost(user)}
        for user in {*self._users} - {*self._held()} - lost:
            if isinstance(user, Section):
                user.lock = threading.RLock()
            else:
                lost.add(user)
        for user in lost:
            user.lock = _LostLock()
        for user in self._held():
            if not isinstance(user.lock, _LostLock):
                user.lock.release()
        self.users = WeakSet(user for user in self._users if user not in lost)
        self._users, self._release = [], ()
        self.lock = threading.RLock()

    def lost(self, user: "Needs") -> bool:
        """Return whether a device is lost."""
        return self.forked and user.needs_runtime and (user.needs_threads or self.disturbed)


def _settled() -> bool:
    """Wait until only Python's threads are running; return whether that happened in time.

    The runtime's threads then hold no lock; Python's threads hold a user's lock while inside OpenCL.
    """
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    end_s = time.monotonic() + _SETTLE_S
    while any(_runs(task) for task in _tasks() if task.name not in ours):
        if time.monotonic() > end_s:
            return False
        time.sleep(_SETTLE_S / 20)
    return True


def _tasks() -> list[Path]:
    return list(_TASKS.iterdir()) if _TASKS.is_dir() else []


def _runs(task: Path) -> bool:
    """Return whether a thread is running, except litecl's helpers, which take no locks (kernels_cl/crew.c)."""
    try:
        before, _, after = (task / "stat").read_text(errors="replace", encoding="utf-8").rpartition(")")
        return after.split()[0] == "R" and "(litecl" not in before
    except OSError:  # the thread has ended
        return False


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _process.before(),
        after_in_parent=lambda: _process.in_parent(),
        after_in_child=lambda: _process.in_child(),
    )
    os.register_at_fork(after_in_parent=lambda: _process.in_parent())  # again: a signal may have ended the first call


class Section:
    """A critical section under ``lock``, which is reentrant for signal handlers. needs_runtime: whether it calls a
    runtime.
    """

    needs_threads = False

    def __init__(self, *, needs_runtime: bool = True) -> None:
        self.lock: Any = threading.RLock()
        self.needs_runtime = needs_runtime
        register(self)


def opened() -> None:
    """Record that this process uses a runtime; call it before the first use."""
    _process.opened = True


def register(user: User) -> None:
    """Register a user, before it first takes its lock."""
    with _process.lock:
        _process.users.add(user)


def lost(device: Needs) -> bool:
    """Return whether a device is lost because the process was forked after a runtime was opened."""
    return _process.lost(device)


def lost_error(name: str) -> DelegateError:
    """Return the error to raise for a lost device."""
    return DelegateError(
        f"{name} does not work in a process forked after devices were opened: start processes with the method "
        "'spawn' or 'forkserver', or open no device before the fork"
    )

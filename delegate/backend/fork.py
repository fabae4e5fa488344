"""Devices in a process that was forked: those that need no threads of their own are left.

The threads of a device's runtime stay behind in the parent, and a child that waits for one waits for ever. A device
that runs kernels in the calling thread works on in the child, but only if no thread was within the runtime at the fork:
what that thread had locked stays locked. So whoever calls one holds a lock of its own meanwhile and is known here.
"""

import os
import threading
import time
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

from litecl.interpreter.errors import DelegateError

_SETTLE_S = 0.02  # in which a runtime's threads put away what they have just finished
_TASKS = Path("/proc/self/task")


class User(Protocol):
    """Holds ``lock`` while it calls a runtime. needs_threads: whether a child of fork can do nothing more with it.

    In a process that has lost its device, to take the lock raises DelegateError.
    """

    lock: Any
    needs_threads: bool


class _LostLock:
    """Stands for the lock of a user whose device is gone."""

    def __enter__(self) -> None:
        raise lost_error("this device")

    def __exit__(self, *error: object) -> None:
        return None


class _Process:
    """Facts about runtimes in this process."""

    def __init__(self) -> None:
        self.users: WeakSet[User] = WeakSet()
        self.lock = threading.RLock()  # of users
        self.opened = False
        self.forked = False  # since a runtime was opened
        self.disturbed = False  # a thread was within a runtime then
        self._users: list[User] = []  # at a fork: all, and those that were not within a runtime
        self._held: list[User] = []
        self._busy = False

    def before(self) -> None:
        """Take the locks that are free: nothing begins until the process is forked."""
        self.lock.acquire()
        self._users = list(self.users)
        self._held = [user for user in self._users if user.lock.acquire(blocking=False)]
        busy = len(self._held) < len(self._users)
        self._busy = busy or (any(user.needs_threads for user in self._users) and not _settled())

    def in_parent(self) -> None:
        """Everything as before."""
        for user in self._held:
            user.lock.release()
        self._users = self._held = []
        self.lock.release()

    def in_child(self) -> None:
        """Forget what can be used no more; its lock says so to who wants to use it all the same."""
        self.forked |= self.opened
        self.disturbed |= self.opened and self._busy
        lost = {user for user in self._users if self.lost(user.needs_threads)}
        for user in lost:
            user.lock = _LostLock()
        for user in self._held:
            if not isinstance(user.lock, _LostLock):
                user.lock.release()
        self.users = WeakSet(user for user in self._users if user not in lost)
        self._users = self._held = []
        self.lock = threading.RLock()

    def lost(self, needs_threads: bool) -> bool:
        """Return whether a device is gone."""
        return self.forked and (needs_threads or self.disturbed)


def _settled() -> bool:
    """Wait until no thread but Python's is at work; whether that was so in time.

    A runtime's threads then hold no lock. Python's own hold the lock of a user if they are within OpenCL.
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
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _process.before(),
        after_in_parent=lambda: _process.in_parent(),
        after_in_child=lambda: _process.in_child(),
    )


class Section:
    """A section that one thread at a time may be in, under ``lock``: use of a runtime."""

    needs_threads = False

    def __init__(self) -> None:
        self.lock: Any = threading.Lock()
        register(self)


def opened() -> None:
    """To be told before a runtime is first asked for anything."""
    _process.opened = True


def register(user: User) -> None:
    """Make a user known, before it first takes its lock."""
    with _process.lock:
        _process.users.add(user)


def lost(needs_threads: bool) -> bool:
    """Return whether a device is gone because the process was forked after a runtime had been opened."""
    return _process.lost(needs_threads)


def lost_error(name: str) -> DelegateError:
    """Return what to raise for a device that is gone."""
    return DelegateError(
        f"{name} does not work in a process that was forked after devices had been opened: start processes with the "
        "method 'spawn' or 'forkserver', or open no device before the fork"
    )

"""What is left of OpenCL in a process that was forked: devices that need no threads of their own.

The threads of an OpenCL runtime stay behind in the parent, and a child that waits for one waits for ever. A device that
runs kernels in the calling thread works on in the child, but only if no thread was within OpenCL at the fork: what that
thread had locked stays locked. So whoever calls OpenCL holds a lock of its own meanwhile and is known here.
"""

import os
import threading
import time
from typing import Any, Protocol
from weakref import WeakSet

from litecl.interpreter.errors import DelegateError

_SETTLE_S = 0.001  # in which a runtime's threads put away what they have just finished


class User(Protocol):
    """Holds ``lock`` while it calls OpenCL. needs_threads: whether a child of fork can do nothing more with it."""

    lock: Any
    needs_threads: bool


class _Process:
    """What is known of OpenCL in this process."""

    def __init__(self) -> None:
        self.users: WeakSet[User] = WeakSet()
        self.lock = threading.RLock()  # of users
        self.opened = False
        self.forked = False  # since OpenCL was opened
        self.disturbed = False  # a thread was within OpenCL then
        self._held: list[User] = []

    def before(self) -> None:
        """Takes the locks that are free: nothing begins until the process is forked."""
        self.lock.acquire()
        users = list(self.users)
        self._held = [user for user in users if user.lock.acquire(blocking=False)]
        self._busy = len(self._held) < len(users)
        if any(user.needs_threads for user in users):
            time.sleep(_SETTLE_S)

    def in_parent(self) -> None:
        """Everything as before."""
        for user in self._held:
            user.lock.release()
        self._held = []
        self.lock.release()

    def in_child(self) -> None:
        """What can be used no more stays locked, and is forgotten."""
        self.forked |= self.opened
        self.disturbed |= self.opened and self._busy
        usable = [user for user in self._held if not (self.disturbed or user.needs_threads)]
        self.users = WeakSet(usable)
        for user in usable:
            user.lock.release()
        self._held = []
        self.lock = threading.RLock()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _process.before(),
        after_in_parent=lambda: _process.in_parent(),
        after_in_child=lambda: _process.in_child(),
    )


class Section:
    """What one thread at a time may do with OpenCL, and does under ``lock``."""

    needs_threads = False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        register(self)


def opened() -> None:
    """To be told before OpenCL is first asked for anything."""
    _process.opened = True


def register(user: User) -> None:
    """Makes a user known, before it first takes its lock."""
    with _process.lock:
        _process.users.add(user)


def lost(needs_threads: bool) -> bool:
    """Whether a device is gone because the process was forked after OpenCL had been opened."""
    return _process.forked and (needs_threads or _process.disturbed)


def lost_error(name: str) -> DelegateError:
    """What to raise for a device that is gone."""
    return DelegateError(
        f"{name} does not work in a process that was forked after OpenCL had been opened: start processes with the "
        "method 'spawn' or 'forkserver', or open no device before the fork"
    )

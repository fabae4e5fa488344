"""Helpers: threads of a second device that share the work of a region with the thread that runs it.

Waking the threads of a runtime for every run takes longer than most small models. So a region runs in the calling
thread, on a device that allows that, and the threads of another device of the same memory help. They come with a kernel
that waits for the next run for a while, and leaves if there is none (region.cl: lead; assist.h). Nothing depends on
them: the calling thread does alone whatever no helper has begun.

The threads help one region at a time. Another one sends them away, unless that region is just running.
"""

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import FAULTS
from litecl.delegate.plan.region_tables import Door, RegionSize
from litecl.delegate.report import summary, warn
from litecl.interpreter.graph import Array

_PATIENCE = 6_000  # pauses before a helper leaves, some 2 ms; most of them let other threads run
_GLANCES = 50  # at helpers that were asked to leave

_LINE = RegionSize.LINE_BYTES // np.int32().nbytes
DOOR_BYTES = RegionSize.LINE_BYTES * len(Door)


class _Post:
    """Where the threads of a device are: one of them must always be free, or kernels of others would wait for ever."""

    needs_threads = True

    def __init__(self) -> None:
        self.lock: Any = threading.Lock()
        self.at: weakref.ref[Helpers] | None = None
        fork.register(self)


_posts: dict[int, _Post] = {}
_posts_lock = threading.Lock()


def _send_away() -> None:
    """Ask all helpers to leave: a fork waits until threads are idle."""
    for post in list(_posts.values()):
        helpers = None if post.at is None else post.at()
        if helpers is not None:
            helpers.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_send_away)  # before what fork.py does, which is registered before it


class Crew:
    """The threads of a device that may help. device: theirs, an open one. count: how many, at least one fewer than it
    has.
    """

    def __init__(self, device: Any, count: int) -> None:
        self.device, self.count = device, count
        with _posts_lock:
            place = device.device.int_ptr
            self._post = _posts[place] if place in _posts else _posts.setdefault(place, _Post())

    def send(self, helpers: "Helpers") -> None:
        """Send the threads to a region, unless they are busy with another one."""
        post = self._post
        if not post.lock.acquire(blocking=False):
            return
        try:
            before = None if post.at is None else post.at()
            if before is None or before is helpers or before.sent_away():
                post.at = weakref.ref(helpers)
                helpers.come()
        finally:
            post.lock.release()


class Helpers:
    """The crew at the door of one region. kernel: ``assist``. door: its memory as the host sees it. buffer: that
    memory, which must not be released before they have left; all else they use only while a run waits for them.
    """

    def __init__(self, crew: Crew, kernel: Any, door: Array, buffer: Any) -> None:
        self._crew, self._queue = crew, crew.device.with_own_queue().queue
        arguments = [np.uint64(door.ctypes.data), np.int32(_PATIENCE)]
        self._kernel = BoundKernel(self._queue, kernel, arguments, (crew.count,), (1,))
        self._lines: Array = door.view(np.int32)[::_LINE]
        weakref.finalize(self, _dismiss, self._lines, self._queue, (door, buffer))

    def call(self) -> None:
        """See that there are helpers, or will be soon. In a forked child there are none."""
        if fork.lost(True):
            self._lines[Door.INSIDE] = 0
        elif not self._lines[Door.HELPERS]:
            self._crew.send(self)

    def come(self) -> None:
        """Queue the kernel that waits for runs."""
        self._lines[Door.LEAVE] = 0
        self._lines[Door.HELPERS] = self._crew.count
        try:
            self._kernel.enqueue()
            self._queue.flush()
        except FAULTS as error:
            self._lines[Door.HELPERS] = 0
            warn(f"no threads help the calling one, which runs regions alone: {summary(error)}")

    def leave(self) -> None:
        """Ask helpers to leave at the end of the run, if there is one."""
        self._lines[Door.LEAVE] = 1

    def sent_away(self) -> bool:
        """Ask helpers to leave unless the region runs; return whether they have left."""
        if self._lines[Door.RUN] % 2:
            return False
        self.leave()
        return any(not self._lines[Door.HELPERS] for _ in range(_GLANCES))


def _dismiss(lines: Array, queue: Any, kept: Sequence[Any]) -> None:
    """Wait until helpers have left, since their memory is about to be released."""
    if lines[Door.HELPERS] and not fork.lost(True):
        lines[Door.LEAVE] = 1
        queue.finish()

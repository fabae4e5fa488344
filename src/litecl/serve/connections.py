"""Uvicorn with limits on the number of connections and on how long a client may hold one."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_ACCEPTED = 100  # connections accepted per loop iteration; everything else waits meanwhile
_BACKLOG = 4096  # connections the system queues until then; it drops further ones, which retry after a second
_SHARE_CLOSED = 8  # close 1/8 of the connections once there are too many: searching costs more than closing
_MARGIN_S = 2.0  # after a deadline of uvicorn or the application, whose answers are more helpful


@dataclass(frozen=True)
class Bounds:
    """most: connections; beyond that, those waiting for their clients are closed, unanswered ones first, then the
    oldest. client_s: how long a client may take to send a request or read an answer. grace_s: from a signal to the end
    of the process.
    """

    most: int = 512
    client_s: float = 30.0
    grace_s: float = 10.0


def serve(application: Any, listener: socket.socket, bounds: Bounds) -> None:
    """Serve until a signal stops the process, then finish the requests under way.

    A second signal ends the process at once, and so does the end of ``grace_s``.
    """
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each write to a client that has left
    with suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to stop
        server(application, bounds).run(sockets=[listener])


def server(application: Any, bounds: Bounds) -> uvicorn.Server:
    """Return a server for an application. Uses the h11 parser, which limits URLs and headers."""

    class Connection(_Connection):
        most = _most_connections(bounds.most)

    config = uvicorn.Config(
        application,
        http=Connection,
        ws="none",
        log_level="error",
        backlog=_ACCEPTED,
        timeout_graceful_shutdown=max(1, round(bounds.grace_s)),
    )
    return _Server(config, bounds)


class _Connection(H11Protocol):  # type: ignore[misc]
    """A connection. served: has been answered before. since_s: start of its current state, by the loop's clock."""

    most = 0
    served = False
    state: Any = None
    since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.since_s = self.loop.time()
        if len(self.connections) > self.most:
            waiting = [each for each in self.connections if each is not self and each.waits_for_client]
            for each in sorted(waiting, key=lambda each: (each.served, each.since_s))[
                : self.most // _SHARE_CLOSED or 1
            ]:
                each.transport.abort()
                self.connections.discard(each)  # at once: others accepted in this iteration must not count it

    def on_response_complete(self) -> None:
        self.served, self.since_s = True, self.loop.time()
        super().on_response_complete()

    @property
    def waits_for_client(self) -> bool:
        """True if the client hasn't sent a whole request or hasn't read a whole answer."""
        whole = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        return not whole or self.transport.get_write_buffer_size() > 0

    def end_if_overdue(self, now_s: float, client_s: float) -> None:
        """Close the connection if its client keeps it waiting for too long. A new request restarts the clock."""
        state = None if self.cycle is None else (self.cycle, self.cycle.more_body, self.cycle.response_complete)
        if state != self.state or not self.waits_for_client:
            self.state, self.since_s = state, now_s
        elif now_s - self.since_s > client_s:
            self.transport.abort()


class _Server(uvicorn.Server):  # type: ignore[misc]
    def __init__(self, config: uvicorn.Config, bounds: Bounds) -> None:
        super().__init__(config)
        self._bounds = bounds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a longer backlog than asyncio's, which equals the number it accepts at once."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_BACKLOG)

    async def on_tick(self, counter: int) -> bool:
        """Close overdue connections, once a second."""
        if counter % 10 == 0:
            now_s = asyncio.get_running_loop().time()
            for each in self._connections():
                each.end_if_overdue(now_s, self._bounds.client_s + _MARGIN_S)
        return bool(await super().on_tick(counter))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests under way; after half of ``grace_s`` drop those that wait for their clients."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._bounds.grace_s / 2, self._drop_late)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down within ``grace_s`` on the first signal, at once on the second."""
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        overdue = threading.Timer(self._bounds.grace_s + _MARGIN_S, _end, [self._bounds.grace_s])
        overdue.daemon = True
        overdue.start()
        super().handle_exit(sig, frame)
        self.force_exit = False  # for two signals at once, of which one came here: it skips the application's end

    def _drop_late(self) -> None:
        for each in self._connections():
            if each.waits_for_client:
                each.transport.abort()

    def _connections(self) -> Iterable[_Connection]:
        return [each for each in self.server_state.connections if isinstance(each, _Connection)]


def _end(grace_s: float) -> None:
    """End a process whose batch takes too long: the device can't be interrupted."""
    print(f"ended with a batch under way, {grace_s:g} s after the signal", file=sys.stderr, flush=True)
    os._exit(1)


def _most_connections(most: int) -> int:
    """Return how many connections the file descriptors allow. Each may briefly need a second one."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return most
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft // 2))

"""Reads the bodies of requests, within limits of size, of time and of memory for all that are under way."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request

_HELD_BODIES, _HELD_BYTES = 4, 256 << 20  # limit for requests under way: the larger of the two


class Bodies:
    """The bodies of a server's requests. most_bytes: limit for one. client_s: limit for sending it."""

    def __init__(self, most_bytes: int, client_s: float) -> None:
        self._most_bytes, self._client_s = most_bytes, client_s
        self._held_bytes = 0
        self._most_held = max(_HELD_BODIES * most_bytes, _HELD_BYTES)

    def release(self, held: list[int]) -> None:
        """Count a body no longer as held."""
        self._held_bytes -= held[0]

    async def read(self, request: Request, held: list[int]) -> bytearray:
        """Return a request's body. held: counts its bytes as they arrive. Raises HTTPException and ClientDisconnect."""
        size, most = request.headers.get("content-length", "0"), self._most_bytes
        if encoding := request.headers.get("content-encoding"):
            raise HTTPException(415, f"expected a body that is not compressed, got {encoding[:20]!r}")
        body = bytearray()
        try:
            async with asyncio.timeout(self._client_s):
                too_long = len(size) > 18 or int(size) > most
                if too_long and "expect" in request.headers:
                    raise _too_long(most)
                async for chunk in request.stream():
                    too_long = too_long or len(body) + len(chunk) > most
                    if too_long:  # many clients read the answer only after sending everything
                        continue
                    held[0] += len(chunk)
                    self._held_bytes += len(chunk)
                    body += chunk
                    if self._held_bytes > self._most_held:
                        raise busy(f"requests of {self._most_held} bytes are under way")
                if too_long:
                    raise _too_long(most)
        except TimeoutError:
            if too_long:
                raise _too_long(most) from None
            detail = f"expected a whole request within {self._client_s:g} s"
            raise HTTPException(408, detail, {"Connection": "close"}) from None
        return body


def busy(reason: str) -> HTTPException:
    """Return the refusal of a request that a client may send again."""
    return HTTPException(503, reason, {"Retry-After": "1"})


def _too_long(most: int) -> HTTPException:
    return HTTPException(413, f"expected at most {most} bytes (--most-bytes)")

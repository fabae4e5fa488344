"""What servers of all models have: limits for clients, counts of answers, and the routes that tell their health."""

import logging
import time
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from litecl.serve.metrics import Metrics

_LOG = logging.getLogger("uvicorn.error")
_GONE = 499  # nginx's code for a client that disconnected; only metrics show it


@dataclass(frozen=True, kw_only=True)
class Limits:
    """most_waiting: requests that wait for the model; those beyond it are refused. most_bytes: of a request's body.

    client_s: for sending a request. answer_s: from then to the end of its answer.
    """

    most_waiting: int = 256
    most_bytes: int = 64 << 20
    client_s: float = 30.0
    answer_s: float = 300.0


async def counted(metrics: Metrics, answer: Awaitable[Response]) -> Response:
    """Return an answer once it is there, and count it by its status."""
    start_s, status = time.perf_counter(), 500
    try:
        response = await answer
        status = response.status_code
    except HTTPException as error:
        status = error.status_code
        raise
    except ClientDisconnect:
        status = _GONE
        response = Response(status_code=_GONE)
    finally:
        metrics.answered(status, time.perf_counter() - start_s)
    return response


def unexpected(error: Exception) -> HTTPException:
    """Log where an error was raised, and return what the client is told: the error's text may quote the request."""
    _LOG.error("%s in a request:\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
    return HTTPException(500, f"{type(error).__name__}; the server's log has its place")


def add_health(application: FastAPI) -> None:
    """Add the routes of the Open Inference Protocol that tell a server's health."""
    application.add_api_route("/v2/health/live", _live)
    application.add_api_route("/v2/health/ready", _ready)


# Coroutines: FastAPI runs plain functions in a thread pool, which requests may fill.


async def _live() -> dict[str, bool]:
    """Return that the process answers."""
    return {"live": True}


async def _ready() -> dict[str, bool]:
    """Return that the model is compiled; it is before the server starts."""
    return {"ready": True}

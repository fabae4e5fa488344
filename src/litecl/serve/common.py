"""What servers of all models have: limits for clients, and the routes that tell their health."""

from dataclasses import dataclass

from fastapi import FastAPI


@dataclass(frozen=True, kw_only=True)
class Limits:
    """most_waiting: requests that wait for the model; those beyond it are refused. most_bytes: of a request's body.

    client_s: for sending a request. answer_s: from then to the end of its answer.
    """

    most_waiting: int = 256
    most_bytes: int = 64 << 20
    client_s: float = 30.0
    answer_s: float = 300.0


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

"""The server's routes: the Open Inference Protocol (version 2) for one model, and its metrics."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.middleware.base import BaseHTTPMiddleware

import litecl
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.predictor import Predictor
from litecl.serve.batching import Batcher, Busy
from litecl.serve.metrics import Metrics
from litecl.serve.protocol import Request, decoded, encoded, name_of


@dataclass(frozen=True)
class Serving:
    """How a model is served. name: in addresses. together: whether requests share batches (``batching.why_apart``).
    most_bytes: of a request's body. The rest: see ``Batcher``.
    """

    name: str
    together: bool = True
    most_rows: int = 32
    wait_s: float = 0.0
    most_waiting: int = 256
    most_bytes: int = 64 << 20


class _Routes:
    """The routes of one server."""

    def __init__(self, predictor: Predictor, serving: Serving) -> None:
        self._predictor, self._serving = predictor, serving
        self.metrics = Metrics(
            {"model": serving.name, "device": ", ".join(predictor.devices), "litecl": litecl.__version__}
        )
        self._batcher: Batcher | None = None

    @asynccontextmanager
    async def alive(self, app: FastAPI) -> AsyncIterator[None]:
        """Run batches while the server runs."""
        how = self._serving
        self._batcher = Batcher(
            self._predictor,
            self.metrics,
            together=how.together,
            most_rows=how.most_rows,
            wait_s=how.wait_s,
            most_waiting=how.most_waiting,
        )
        task = asyncio.create_task(self._batcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def live(self) -> dict[str, bool]:
        """Return that the process answers."""
        return {"live": True}

    def ready(self) -> dict[str, bool]:
        """Return that the model is compiled, which it is before the server starts."""
        return {"ready": True}

    def server(self) -> dict[str, Any]:
        """Return the server's name and version."""
        return {"name": "litecl", "version": litecl.__version__, "extensions": []}

    def model(self, name: str) -> dict[str, Any]:
        """Return the model's inputs and outputs, and whether requests change the results of later ones."""
        self._require(name)
        inputs = [
            {"name": each, "datatype": name_of(dtype), "shape": [*shape]}
            for each, (shape, dtype) in self._predictor.inputs.items()
        ]
        outputs = [
            {"name": each, "datatype": name_of(dtype), "shape": [*shape]}
            for each, (shape, dtype) in self._predictor.results.items()
        ]
        parameters = {"keeps_states": self._predictor.keeps_states}
        return {
            "name": name,
            "platform": "litecl_tflite",
            "inputs": inputs,
            "outputs": outputs,
            "parameters": parameters,
        }

    def model_ready(self, name: str) -> dict[str, Any]:
        """Return that the model is compiled."""
        self._require(name)
        return {"name": name, "ready": True}

    async def infer(self, name: str, request: Request) -> Response:
        """Run a batch. A wrong one is its client's error (400); with too many waiting ones it is refused (503)."""
        self._require(name)
        assert self._batcher is not None
        try:
            wanted = self._wanted(request)
            results = await self._batcher(await asyncio.to_thread(decoded, request.inputs))
        except Busy as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from error
        except ModelError as error:
            raise HTTPException(400, f"{type(error).__name__}: {error}") from error
        except LiteclError as error:
            raise HTTPException(500, f"{type(error).__name__}: {error}") from error
        outputs = [encoded(each, results[each]) for each in wanted]
        return JSONResponse({"model_name": name, "id": request.id, "outputs": outputs})

    def text(self) -> str:
        """Return the metrics."""
        return self.metrics.text(0 if self._batcher is None else self._batcher.waiting)

    async def watched(self, request: HttpRequest, go_on: Callable[[HttpRequest], Awaitable[Response]]) -> Response:
        """Count a request for a result; refuse a body that is too large, or whose size is not told."""
        if not request.url.path.endswith("/infer"):
            return await go_on(request)
        start_s, size = time.perf_counter(), request.headers.get("content-length", "")
        if not size.isdecimal():
            response: Response = JSONResponse({"detail": "expected a Content-Length"}, 411)
        elif int(size) > self._serving.most_bytes:
            response = JSONResponse({"detail": f"expected at most {self._serving.most_bytes} bytes, got {size}"}, 413)
        else:
            response = await go_on(request)
        self.metrics.answered(response.status_code, time.perf_counter() - start_s)
        return response

    def _require(self, name: str) -> None:
        if name != self._serving.name:
            raise HTTPException(404, f"there is no model {name!r}; this server has {self._serving.name!r}")

    def _wanted(self, request: Request) -> list[str]:
        names = [each.name for each in request.outputs or ()] or self._predictor.outputs
        if unknown := {*names} - {*self._predictor.outputs}:
            raise ModelError(f"outputs: expected names of {self._predictor.outputs}, got {sorted(unknown)}")
        return names


def app(predictor: Predictor, serving: Serving) -> tuple[FastAPI, Metrics]:
    """Return a server's application, and what it counts."""
    routes = _Routes(predictor, serving)
    made = FastAPI(title="litecl", version=litecl.__version__, lifespan=routes.alive)
    made.add_api_route("/v2/health/live", routes.live)
    made.add_api_route("/v2/health/ready", routes.ready)
    made.add_api_route("/v2", routes.server)
    made.add_api_route("/v2/models/{name}", routes.model)
    made.add_api_route("/v2/models/{name}/ready", routes.model_ready)
    made.add_api_route("/v2/models/{name}/infer", routes.infer, methods=["POST"], response_class=JSONResponse)
    made.add_api_route("/metrics", routes.text, response_class=PlainTextResponse)
    made.add_middleware(BaseHTTPMiddleware, dispatch=routes.watched)
    return made, routes.metrics

"""The server's routes: the Open Inference Protocol (version 2) for one model, and its metrics."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import litecl
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.predictor import Predictor
from litecl.serve.batching import Batcher, Busy
from litecl.serve.bodies import Bodies, busy
from litecl.serve.common import Limits, add_health, counted, unexpected
from litecl.serve.metrics import Metrics
from litecl.serve.protocol import LENGTH_HEADER, REQUEST_SCHEMA, Interface, answer_of, name_of, request_of

T = TypeVar("T")
_READERS = 2  # threads that parse requests and serialize answers


@dataclass(frozen=True)
class Serving(Limits):
    """How to serve a model. name: in URLs. together: whether requests share batches (``batching.why_apart``).

    most_rows, wait_s: see ``Batcher``.
    """

    name: str
    together: bool = True
    most_rows: int = 32
    wait_s: float = 0.0


class _Routes:
    """The handlers of one server's routes."""

    def __init__(self, predictor: Predictor, serving: Serving) -> None:
        self._predictor, self._serving = predictor, serving
        self._described = _described(predictor, serving.name)
        self._interface = Interface([*predictor.inputs], predictor.outputs, 100_000 + serving.most_bytes // 256)
        self.metrics = Metrics(
            {"model": serving.name, "device": ", ".join(predictor.devices), "litecl": litecl.__version__}
        )
        self._bodies = Bodies(serving.most_bytes, serving.client_s)
        self._batcher: Batcher | None = None
        self._readers: ThreadPoolExecutor | None = None

    @asynccontextmanager
    async def alive(self, app: FastAPI) -> AsyncIterator[None]:
        """Run batches while the server runs."""
        how = self._serving
        self._readers = ThreadPoolExecutor(_READERS, "litecl-requests")
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
        self._readers.shutdown(wait=False, cancel_futures=True)

    # Coroutines: FastAPI runs plain functions in a thread pool, which requests may fill.

    async def server(self) -> dict[str, Any]:
        """Return the server's name and version."""
        return {"name": "litecl", "version": litecl.__version__, "extensions": ["binary_tensor_data"]}

    async def model(self, name: str) -> dict[str, Any]:
        """Return the model's inputs and outputs, and whether it keeps states from one request to the next."""
        self._require(name)
        return self._described

    async def model_ready(self, name: str) -> dict[str, Any]:
        """Return that the model is compiled."""
        self._require(name)
        return {"name": name, "ready": True}

    async def not_posted(self, name: str) -> None:
        """Refuse a request for results that is no POST: the address of a model would take it otherwise."""
        self._require(name)
        raise HTTPException(405, "expected POST", {"Allow": "POST"})

    async def infer(self, name: str, request: HttpRequest) -> Response:
        """Run a batch. An invalid one is the client's error (400); with too many waiting it is refused (503)."""
        return await counted(self.metrics, self._answered(name, request))

    async def text(self) -> str:
        """Return the metrics."""
        return self.metrics.text(0 if self._batcher is None else self._batcher.waiting)

    async def _answered(self, name: str, request: HttpRequest) -> Response:
        """Return the answer to a request. Its body counts as held until then, as do the arrays parsed from it."""
        self._require(name)
        held = [0]
        try:
            return await self._run(request, await self._bodies.read(request, held))
        except Busy as error:
            raise busy(str(error)) from error
        except TimeoutError as error:
            raise HTTPException(504, f"expected an answer within {self._serving.answer_s:g} s") from error
        except ModelError as error:
            raise HTTPException(400, f"{type(error).__name__}: {error}") from error
        except LiteclError as error:
            raise HTTPException(500, f"{type(error).__name__}: {error}") from error
        except asyncio.CancelledError as error:  # uvicorn cancels once its shutdown timeout has passed
            raise busy("the server is ending") from error
        except (HTTPException, ClientDisconnect):
            raise
        except Exception as error:
            raise unexpected(error) from error
        finally:
            self._bodies.release(held)

    async def _run(self, request: HttpRequest, body: bytearray) -> Response:
        assert self._batcher is not None
        async with asyncio.timeout(self._serving.answer_s):
            asked = await self._in_thread(request_of, body, request.headers.get(LENGTH_HEADER), self._interface)
            del body
            results = await self._batcher(asked.batch)
            content, headers = await self._in_thread(answer_of, self._serving.name, asked, results)
        return Response(content, headers=headers)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *arguments)

    def _require(self, name: str) -> None:
        if name != self._serving.name:
            raise HTTPException(404, f"expected the model {self._serving.name!r}, which is the only one here")


def _described(predictor: Predictor, name: str) -> dict[str, Any]:
    """Describe a model as the protocol does. Raises ModelError for a type that the protocol lacks."""
    inputs, outputs = (
        [{"name": each, "datatype": name_of(dtype), "shape": [*shape]} for each, (shape, dtype) in tensors.items()]
        for tensors in (predictor.inputs, predictor.results)
    )
    parameters = {"keeps_states": predictor.keeps_states}
    platform = {"name": name, "platform": "litecl_tflite"}
    return {**platform, "inputs": inputs, "outputs": outputs, "parameters": parameters}


async def _error(request: HttpRequest, error: Exception) -> Response:
    """Return an error in the protocol's format."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def app(predictor: Predictor, serving: Serving) -> tuple[FastAPI, Metrics]:
    """Return a server's application and its metrics. Raises ModelError for a model that can't be served."""
    routes = _Routes(predictor, serving)
    application = FastAPI(title="litecl", version=litecl.__version__, lifespan=routes.alive)
    add_health(application)
    application.add_api_route("/v2", routes.server)
    application.add_api_route("/v2/models/{name:path}/ready", routes.model_ready)
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": REQUEST_SCHEMA}}}}
    application.add_api_route("/v2/models/{name:path}/infer", routes.infer, methods=["POST"], openapi_extra=body)
    application.add_api_route("/v2/models/{name:path}/infer", routes.not_posted, include_in_schema=False)
    application.add_api_route("/v2/models/{name:path}", routes.model)
    application.add_api_route("/metrics", routes.text, response_class=PlainTextResponse)
    application.add_exception_handler(HTTPException, _error)
    return application, routes.metrics

"""The routes of a server for a language model: OpenAI's protocol for texts and chats, health and metrics."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import litecl
from litecl.generate.chat import Reply
from litecl.generate.generator import Generator
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.errors import LiteclError, MissingExtra
from litecl.serve.batching import Busy
from litecl.serve.bodies import Bodies, busy
from litecl.serve.common import Limits, add_health, counted, unexpected
from litecl.serve.completions import Answer, Refused, TokenScore, Usage, asked_of, error_object, refusal_of
from litecl.serve.generating import Engine, Event
from litecl.serve.metrics import Metrics

_NO_RETRY = {"x-should-retry": "false"}  # OpenAI's clients ask again after a 504 otherwise
_PATHS = "/v1/models, /v1/chat/completions and /v1/completions"


@dataclass(frozen=True)
class TextServing(Limits):
    """How to serve a language model. name: in requests. sessions: see ``Engine``."""

    name: str
    sessions: int = 4
    most_bytes: int = field(default=16 << 20, kw_only=True)


class _Routes:
    """The handlers of one server's routes."""

    def __init__(self, generator: Generator, serving: TextServing) -> None:
        self._generator, self._serving = generator, serving
        self._bodies = Bodies(serving.most_bytes, serving.client_s)
        self._created = int(time.time())
        report = generator.report()
        device = "numpy" if report is None else str(report.device)
        self.metrics = Metrics({"model": serving.name, "device": device, "litecl": litecl.__version__})
        self._engine = Engine(generator, serving.sessions, serving.most_waiting)
        self._tokenizer = _tokenizer(generator)

    @asynccontextmanager
    async def alive(self, app: FastAPI) -> AsyncIterator[None]:
        """End threads with the server."""
        yield
        self._engine.close()

    # Coroutines: FastAPI runs plain functions in a thread pool, which requests may fill.

    async def models(self) -> dict[str, Any]:
        """Return the model's name, as a list."""
        return {"object": "list", "data": [self._model()]}

    async def model(self, name: str) -> dict[str, Any]:
        """Return the model's name, if it is this one."""
        if name != self._serving.name:
            detail = f"The model {name[:200]!r} does not exist; expected {self._serving.name!r}"
            raise Refused(404, detail, "model", "model_not_found")
        return self._model()

    async def chat(self, request: HttpRequest) -> Response:
        """Answer a conversation."""
        return await counted(self.metrics, self._answered(request, chat=True))

    async def texts(self, request: HttpRequest) -> Response:
        """Continue texts."""
        return await counted(self.metrics, self._answered(request, chat=False))

    async def text(self) -> str:
        """Return the metrics."""
        return self.metrics.text(self._engine.waiting)

    def _model(self) -> dict[str, Any]:
        name = self._serving.name
        return {"id": name, "object": "model", "created": self._created, "owned_by": "litecl"}

    async def _answered(self, request: HttpRequest, *, chat: bool) -> Response:
        held, usage = [0], Usage()
        try:
            body = await self._bodies.read(request, held)
            asked = asked_of(body, self._serving.name, self._generator.defaults, chat=chat)
            del body
            answer = Answer(asked, self._serving.name, self._tokenizer)
            events = self._engine.run(asked, usage, self._serving.answer_s)
            answering = self._streamed if asked.stream else self._whole
            return await _unless_left(request, answering(events, answer, usage))
        finally:
            self._bodies.release(held)

    async def _whole(self, events: AsyncIterator[Event], answer: Answer, usage: Usage) -> Response:
        choices: list[tuple[Reply, list[TokenScore]]] = []
        scores = list[TokenScore]()
        async with self._generating(events, usage):
            async for _, piece, new in self._checked(events):  # one choice after another
                scores += new
                if piece.reply is not None:
                    choices.append((piece.reply, scores))
                    scores = []
        return _Json(answer.whole(choices, usage))

    @asynccontextmanager
    async def _generating(self, events: Any, usage: Usage) -> AsyncIterator[None]:
        """End a generation, and count its tokens."""
        try:
            yield
        finally:
            await events.aclose()
            self.metrics.generated(usage.prompt, usage.generated)

    async def _streamed(self, events: AsyncIterator[Event], answer: Answer, usage: Usage) -> Response:
        """Return a response of server-sent events, once there is a first one: what fails before has a status."""
        checked = self._checked(events)
        try:
            first = await anext(checked)
        except BaseException:
            await events.aclose()  # type: ignore[attr-defined]
            raise
        return StreamingResponse(self._sent(first, checked, events, answer, usage), media_type="text/event-stream")

    async def _sent(
        self, first: Event, checked: AsyncIterator[Event], events: Any, answer: Answer, usage: Usage
    ) -> AsyncIterator[bytes]:
        begun = set[int]()
        async with self._generating(events, usage):
            try:
                for chunk in answer.chunks(*first, True):
                    yield _line(chunk)
                begun.add(first[0])
                async for choice, piece, scores in checked:
                    for chunk in answer.chunks(choice, piece, scores, choice not in begun):
                        yield _line(chunk)
                    begun.add(choice)
                if (last := answer.last(usage)) is not None:
                    yield _line(last)
                yield b"data: [DONE]\n\n"
            except HTTPException as error:
                yield _line(_document(error))

    async def _checked(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Yield events; raise what goes wrong as what a client is answered."""
        try:
            async for event in events:
                yield event
        except Busy as error:
            raise busy(str(error)) from error
        except TimeoutError as error:
            detail = f"expected an answer within {self._serving.answer_s:g} s"
            raise HTTPException(504, detail, _NO_RETRY) from error
        except Refused:
            raise
        except LiteclError as error:
            raise refusal_of(error) from error
        except Exception as error:
            raise unexpected(error) from error


async def _unless_left(request: HttpRequest, answering: Any) -> Response:
    """Return an answer, or raise ClientDisconnect, which ends its generation, once the client has gone."""
    task = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return await task
    except asyncio.CancelledError as error:  # uvicorn cancels once its shutdown timeout has passed
        raise busy("the server is ending") from error
    finally:
        for each in (task, gone):
            each.cancel()
            with suppress(BaseException):
                await each


async def _gone(request: HttpRequest) -> None:
    """Return once the client has disconnected. Its body has been read, so nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Json(JSONResponse):  # type: ignore[misc]
    """A response in JSON. Half a surrogate pair, which JSON's escapes can write but UTF-8 can't, becomes a "?"."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _line(document: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _Json(document).body


def _document(error: HTTPException) -> dict[str, Any]:
    if isinstance(error, Refused):
        return error_object(error.status_code, error.detail, error.param, error.code)
    if error.status_code in (404, 405):
        return error_object(error.status_code, f"{error.detail}: this server has {_PATHS}", None, "unknown_url")
    return error_object(error.status_code, error.detail, None, "overloaded" if error.status_code == 503 else None)


async def _error(request: HttpRequest, error: Exception) -> Response:
    """Return an error in the protocol's format."""
    assert isinstance(error, HTTPException)
    return _Json(_document(error), error.status_code, error.headers)


def _tokenizer(generator: Generator) -> Tokenizer | None:
    with suppress(MissingExtra):
        return generator.tokenizer
    return None


def text_app(generator: Generator, serving: TextServing) -> tuple[FastAPI, Metrics]:
    """Return a server's application and its metrics."""
    routes = _Routes(generator, serving)
    application = FastAPI(title="litecl", version=litecl.__version__, lifespan=routes.alive)
    application.add_api_route("/v1/models", routes.models)
    application.add_api_route("/v1/models/{name:path}", routes.model)
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
    application.add_api_route("/v1/chat/completions", routes.chat, methods=["POST"], openapi_extra=body)
    application.add_api_route("/v1/completions", routes.texts, methods=["POST"], openapi_extra=body)
    add_health(application)
    application.add_api_route("/metrics", routes.text, response_class=PlainTextResponse)
    application.add_exception_handler(HTTPException, _error)
    return application, routes.metrics

"""Runs the requests of a text server: on a few sessions of one generator, in threads, until done, late or left."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from litecl.generate.chat import ChatPiece, ChatPrompt, Reply, reply_pieces
from litecl.generate.generator import Generator
from litecl.generate.options import Generation, Timing
from litecl.generate.replies import ReplyFormat
from litecl.generate.session import Session
from litecl.serve.batching import Busy
from litecl.serve.completions import Asked, TokenScore, Usage
from litecl.serve.json_replies import JsonReplies

_End = object()
Event = tuple[int, ChatPiece, list[TokenScore]]  # the number of a choice, its next piece, the scores of its tokens
_PLAIN = ChatPrompt("", ReplyFormat(), "content", 0)  # of a text, whose reply has no parts


class Left(Exception):
    """Raised in a request's thread once nobody waits for its answer."""


class Engine:
    """Generates texts for requests. sessions: requests that generate at once; the model runs one step at a time.

    most_waiting: requests that wait for a session; those beyond it raise ``Busy``. Sessions keep caches: a request
    takes the one that holds most of its prompt.
    """

    def __init__(self, generator: Generator, sessions: int, most_waiting: int) -> None:
        self._generator, self._most_waiting = generator, most_waiting
        self._json = JsonReplies(generator)
        self._free: list[Session] = []
        self._left = sessions  # sessions that don't exist yet
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(sessions, "litecl-texts")
        self._under_way, self._sessions = 0, sessions

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a session."""
        return max(self._under_way - self._sessions, 0)

    async def run(self, asked: Asked, usage: Usage, answer_s: float) -> AsyncIterator[Event]:
        """Yield the pieces of a request's choices; closing the iterator ends the generation. usage: is counted.

        Raises Busy, TimeoutError after ``answer_s``, and the errors of ``Session.stream``.
        """
        if self.waiting >= self._most_waiting:
            raise Busy(f"{self._most_waiting} requests wait already")
        loop, events = asyncio.get_running_loop(), asyncio.Queue[Any]()
        left, deadline_s = threading.Event(), time.monotonic() + answer_s

        def require_wanted() -> None:
            if left.is_set() or time.monotonic() > deadline_s:
                raise Left

        def tell(event: Any) -> None:
            require_wanted()
            loop.call_soon_threadsafe(events.put_nowait, event)

        def work() -> None:
            try:
                require_wanted()
                for event in self._events(asked, usage, require_wanted):
                    tell(event)
                tell(_End)
            except Left:
                pass
            except BaseException as error:
                loop.call_soon_threadsafe(events.put_nowait, error)

        self._under_way += 1
        task = loop.run_in_executor(self._threads, work)
        task.add_done_callback(self._ended)
        try:
            while True:
                async with asyncio.timeout(deadline_s - time.monotonic()):
                    event = await events.get()
                if event is _End:
                    return
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            left.set()
            task.cancel()  # if no thread has taken it yet

    def close(self) -> None:
        """Start nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ended(self, task: "asyncio.Future[None]") -> None:
        self._under_way -= 1

    def _events(self, asked: Asked, usage: Usage, go_on: Callable[[], None]) -> Iterator[Event]:
        """Yield the pieces of all choices, one choice after another: the later ones find the prompt in the caches.

        go_on: see ``Session``.
        """
        if asked.chat:
            prompt = self._generator.chat_prompt(asked.messages, tools=asked.tools, variables=asked.variables)
            prompts: list[ChatPrompt | list[int]] = [prompt]
        else:
            prompts = [self._generator.encode(p) if isinstance(p, str) else [*p] for p in asked.prompts]
        for number, each in enumerate(prompts):
            with self._session(each) as session:
                session.go_on = go_on
                for choice in range(asked.choices):
                    before = Usage() if choice else usage
                    options = asked.options_of(choice)
                    if isinstance(each, ChatPrompt) and asked.calls:
                        options["mask"] = self._json.mask_of_calls(asked.calls, each)
                    elif isinstance(each, ChatPrompt) and asked.schema is not None:
                        options["mask"] = self._json.mask(asked.schema, each)
                    for piece in self._choice(session, each, options, before):
                        usage.generated += len(piece.pieces)
                        scores = TokenScore.of(piece.pieces, asked.alternatives or 0)
                        yield number * asked.choices + choice, piece, scores

    def _choice(
        self, session: Session, prompt: ChatPrompt | list[int], options: dict[str, Any], usage: Usage
    ) -> Iterator[ChatPiece]:
        shared = session.shared(prompt)
        if isinstance(prompt, ChatPrompt):
            pieces = session.stream_chat(prompt, **options)
        else:
            session.rewind(prompt)
            if options["max_tokens"] == 0:
                usage.prompt += len(session.tokens)
                usage.cached += min(shared, len(session.tokens) - 1)
                yield ChatPiece("", "content", (), Reply("", "", (), Generation("", (), "max_tokens", Timing())))
                return
            pieces = reply_pieces(session.stream((), **options), _PLAIN)
        is_first = True
        for piece in pieces:
            if is_first:
                usage.prompt += len(session.tokens) - len(piece.pieces)
                usage.cached += min(shared, len(session.tokens) - len(piece.pieces) - 1)
                is_first = False
            yield piece

    @contextmanager
    def _session(self, prompt: ChatPrompt | list[int]) -> Iterator[Session]:
        """Lend the free session that holds most of a prompt, or a new one if there may be more."""
        with self._lock:
            best = max(self._free, key=lambda each: each.shared(prompt), default=None)
            if self._left and (best is None or 2 * best.shared(prompt) < len(best.tokens)):  # another conversation's
                best = self._generator.session()  # counts once it exists
                self._left -= 1
            else:
                assert best is not None  # there are as many threads as sessions
                self._free.remove(best)
        try:
            yield best
        finally:
            with self._lock:
                self._free.append(best)

"""Interpreter, device and LiteRT, each in a process of its own, which may die of what it runs or never end."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, fault
from litecl.interpreter.graph import Array
from litecl.perf.feeds import labels, outputs_of, prepare
from support import pocl_processor

_PATIENCE_S = 20.0
_FAULT = str(fault(ValueError())).partition(" (")[0]  # what the executor says of errors that numpy raises

Outcome = list[Array] | str
"""Outputs, or the error: of a type of litecl's, or else "untyped"."""


def outcome_of(content: bytes, feeds: Sequence[Array], **options: Any) -> Outcome:
    """Return what litecl makes of a model within 256 MB. options: of the interpreter."""
    try:
        return _ran(Interpreter(model_content=content, memory_limit=1 << 28, **options), feeds)
    except LiteclError as error:
        return f"untyped: {error}" if _FAULT in str(error) else f"refused: {type(error).__name__}"
    except Exception as error:  # which nobody expects
        return f"untyped: {type(error).__name__}: {error}"


def _ran(interpreter: Any, feeds: Sequence[Array]) -> list[Array]:
    prepare(interpreter, dict(zip(labels(interpreter.get_input_details()), feeds, strict=True)))
    interpreter.invoke()
    return outputs_of(interpreter)


class Peer:
    """Something that runs edges, in a process of its own, which is started again where an edge ends it or hangs."""

    def __init__(self, serve: Callable[[Connection, Any], None], argument: Any = None) -> None:
        self._serve, self._argument = serve, argument
        self._process: Any = None
        self._pipe: Any = None

    def outcomes(self, content: bytes, case: Case) -> tuple[Outcome, ...] | None:
        """Return what it makes of the model of a case; None if it died or hung."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=self._serve, args=(theirs, self._argument), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send((content, case.feeds, case.kernels))
            if self._pipe.poll(_PATIENCE_S):
                answer: tuple[Outcome, ...] = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            pass
        self.close()
        return None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = None


def serve_litert(pipe: Connection, _: Any) -> None:
    """Run cases by LiteRT, with the kernels that each asks for."""
    from ai_edge_litert.interpreter import Interpreter as TheirInterpreter
    from ai_edge_litert.interpreter import OpResolverType

    resolvers = {"reference": OpResolverType.BUILTIN_REF, "default": OpResolverType.BUILTIN}
    while True:
        content, feeds, kernels = pipe.recv()
        try:
            resolver = resolvers.get(kernels, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
            made = TheirInterpreter(model_content=content, num_threads=1, experimental_op_resolver_type=resolver)
            pipe.send((_ran(made, feeds),))
        except Exception as error:
            pipe.send((f"refused: {error}",))


def serve_interpreter(pipe: Connection, _: Any) -> None:
    """Run cases on the CPU."""
    while True:
        content, feeds, _ = pipe.recv()
        pipe.send((outcome_of(content, feeds),))


def serve_device(pipe: Connection, device: object) -> None:
    """Run cases on a device (``CLDelegate(device=...)``) that must not fail."""
    pocl_processor.watch()
    options = {"num_threads": 1, "strict": True, "dynamic_range": "reference"}
    while True:
        content, feeds, _ = pipe.recv()
        pipe.send((outcome_of(content, feeds, delegates=[CLDelegate(device, **options)]),))

"""A table of exporters' files: prefill and decode steps beside LiteRT's reference kernels.

    PYTHONPATH=tests python -m tools.language_models FOLDER_OR_FILE... [--steps 50] [--window 16] [--tolerance 0.03]

Every ``.tflite`` file with signatures ``prefill_N`` and ``decode`` reads random tokens: each prefill, then single ones.
Logits and caches of XNNPACK, of numpy and of the device are compared, as the largest difference relative to the largest
value. ``embedder.tflite`` beside a file computes its embeddings; without one they are random. Other files are invoked
once. The exit code is 1 if a file fails, leaves nodes to the CPU, or differs by more than the tolerance and than
XNNPACK, which rounds other rows of inputs up where integers multiply.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl.delegate import CLDelegate, DelegationReport
from litecl.generate import parts
from litecl.generate.model import LanguageModel, requires
from litecl.generate.runners import InterpreterRunner, Runner
from litecl.generate.signatures import steps
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Signature
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import random_inputs
from litecl.perf.peer_runner import PeerRunner
from support.build import Graph, model

_HEAD = ("file", "LiteRT", "logits: XNNPACK, numpy, device", "caches", "claimed", "launches")


@dataclass(frozen=True)
class Row:
    """What became of one file. reference: the kernels of LiteRT's that ran it, and whether they computed zeros alone.

    logits, caches: the largest differences of XNNPACK, of numpy and of the device. left: why nodes were left to the
    CPU. launches: of a decode step.
    """

    file: str
    reference: str
    logits: tuple[float, ...] = ()
    caches: tuple[float, ...] = ()
    claimed: str = ""
    left: tuple[str, ...] = ()
    launches: int = 0
    error: str = ""

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        numbers = [
            ", ".join("-" if np.isnan(x) else f"{x:.0e}" for x in each) or "-" for each in (self.logits, self.caches)
        ]
        told = self.error or self.claimed + "".join(f"; {reason}" for reason in self.left)
        return [self.file, self.reference, *numbers, told, str(self.launches)]

    def good(self, tolerance: float) -> bool:
        """Return whether all is as it should be."""
        if self.error or self.left:
            return False
        pairs = [(max(each[1:]), each[0]) for each in (self.logits, self.caches) if each]
        return all(ours <= max(tolerance, theirs) for ours, theirs in pairs)


class _Reference(PeerRunner):
    """LiteRT by its reference kernels, or by the optimised ones where those do not run the file."""

    def __init__(self, content: bytes) -> None:
        self._name, made = "LiteRT", _litert(content)[1]
        self._runners = {key: made.get_signature_runner(key) for key in made.get_signature_list()}


def _litert(content: bytes) -> tuple[str, Any]:
    """Return LiteRT's interpreter, and which kernels it has. Raises RuntimeError if there are none for the file."""
    kinds = {"reference": OpResolverType.BUILTIN_REF, "optimised": OpResolverType.AUTO}
    for name, kind in kinds.items():
        try:
            made = LiteRT(model_content=content, experimental_op_resolver_type=kind)
            made.allocate_tensors()
            return name, made
        except (RuntimeError, ValueError) as error:
            if name == "optimised":
                raise RuntimeError(f"LiteRT: {str(error).splitlines()[0][:100]}") from error
    raise AssertionError


def rows(path: Path, count: int, window: int) -> Row:
    """Compare a file."""
    content, name = path.read_bytes(), f"{path.parent.name}/{path.name}"
    try:
        kernels = _litert(content)[0]
    except RuntimeError as error:
        return Row(name, "-", error=str(error))
    try:
        found = parts.read(path)
        interpreters = [
            Interpreter(read(found.model.content, found.model.find), delegates=d)
            for d in ([], [CLDelegate(dynamic_range="reference")])
        ]
        keys = interpreters[0].get_signature_list()
        differences = _steps if "decode" in keys else _invoke
        logits, caches, zeros = differences(content, found, interpreters, count, window)
        report = DelegationReport.of(interpreters[1])
    except (LiteclError, RuntimeError, ValueError) as error:
        return Row(name, kernels, error=f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
    left = tuple(sorted({f"{node.op}: {node.reason}" for node in report.nodes if not node.claimed}))
    claimed = f"{sum(node.claimed for node in report.nodes)} of {len(report.nodes)}"
    return Row(name, kernels + ", zeros" * zeros, logits, caches, claimed, left, report.counters.kernel_launches)


_Differences = tuple[tuple[float, ...], tuple[float, ...], bool]


def _steps(
    content: bytes, found: parts.Parts, interpreters: Sequence[Interpreter], count: int, window: int
) -> _Differences:
    """Return the largest differences of logits and of caches to LiteRT, and whether its logits are zeros."""
    embedders = _embedders(found, interpreters[0])

    def made(interpreter: Interpreter, run: Callable[[Interpreter], Runner]) -> _Model:
        return _Model(found, interpreter, embedders, window, run)

    models: list[_Model | None] = [made(interpreters[0], lambda each: _Reference(_content(each, content)))]
    try:
        peer = made(interpreters[0], lambda each: PeerRunner("litert", _content(each, content), 1))
        peer.read([3])
        models.append(peer)
    except LiteclError:
        models.append(None)  # XNNPACK refuses scales of zero, for instance
    models += [made(each, InterpreterRunner) for each in interpreters]
    widths = sorted({step.width or 8 for step in steps(interpreters[0])[0]}, reverse=True) or [0]
    words = min(500, next(each.model.vocabulary for each in models if each is not None))
    tokens = np.random.default_rng(1).integers(3, words, widths[0] + count).tolist()
    logits, caches, zeros = np.zeros(3), np.zeros(3), True
    for width in widths:
        pieces = [tokens[:width]] * (width > 0)
        pieces += [[token] for token in tokens[width : width + count]] * (width == widths[-1])
        for each in models:
            if each is not None:
                each.begin()
        for piece in pieces:
            expected, *got = [None if each is None else each.read(piece) for each in models]
            zeros &= expected is None or not np.any(expected)
            logits = np.maximum(logits, [_apart(expected, value) for value in got])
        held, *others = [{} if each is None else each.values() for each in models]
        caches = np.maximum(caches, [max(_apart(held[name], each.get(name)) for name in held) for each in others])
    if models[1] is None:
        logits[0] = caches[0] = np.nan
    return (*logits.tolist(),), (*caches.tolist(),), zeros


class _Model:
    """A file in one runtime, on a text."""

    def __init__(
        self, found: parts.Parts, interpreter: Interpreter, embedders: Mapping[str, Interpreter], window: int, run: Any
    ) -> None:
        runners: list[Runner] = []

        def keep(each: Interpreter) -> Runner:
            runners.append(run(each))
            return runners[-1]

        said = found.metadata
        self.model = LanguageModel(interpreter, embedders, said.context_length, said.sliding_window or window, keep)
        self._runner = runners[0]
        self.begin()

    def begin(self) -> None:
        """Forget the text."""
        self._caches, self._position = self.model.caches(), 0

    def read(self, tokens: Sequence[int]) -> Array | None:
        """Read the next tokens; return the logits that follow a single one."""
        self._position += len(tokens)
        return self.model.run(tokens, self._position - len(tokens), self._caches)

    def values(self) -> dict[str, Array]:
        """Return the caches."""
        return self._runner.values(self._caches)


def _content(interpreter: Interpreter, content: bytes) -> bytes:
    """Return the file of an interpreter: the model's, or an embedder's."""
    return content if _is_model(interpreter) else write(interpreter.model)


def _is_model(interpreter: Interpreter) -> bool:
    return any(signature.key == "decode" for signature in interpreter.model.signatures)


def _embedders(found: parts.Parts, interpreter: Interpreter) -> dict[str, Interpreter]:
    """Return embedders of numpy: the file's, or random ones."""
    prefills, decode = steps(interpreter)
    made = {}
    for name in requires(interpreter):
        if name in found.embedders:
            made[name] = Interpreter(read(found.embedders[name].content, found.embedders[name].find))
        else:
            (entry,) = [each for each in decode.inputs if each.name == name]
            widths = [step.width for step in prefills if step.width] + [1]
            made[name] = Interpreter(_random_embedder(widths, entry.shape[-1]))
    return made


def _random_embedder(widths: Sequence[int], size: int, words: int = 512) -> Model:
    table = np.random.default_rng(5).standard_normal((words, size)).astype(np.float32)
    graphs, signatures = [], []
    for number, width in enumerate(widths):
        g = Graph(f"embed_{width}")
        tokens = g.input((1, width), TensorType.INT32)
        y = g.op(GATHER, [g.const(table), tokens], GatherOptions(axis=0))
        signatures.append(Signature(g.name, {"token_ids": tokens}, {"embeddings": y}, number))
        graphs.append(g.build(y))
    return model(*graphs, signatures=signatures)


def _invoke(
    content: bytes, found: parts.Parts, interpreters: Sequence[Interpreter], count: int, window: int
) -> _Differences:
    """Return the same of the outputs of one invoke on random inputs."""
    results = []
    for interpreter in (_litert(content)[1], LiteRT(model_content=content), *interpreters):
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        for detail, value in zip(details, random_inputs(details, 0).values(), strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append([np.array(interpreter.get_tensor(each["index"])) for each in interpreter.get_output_details()])
    expected, *others = results
    apart = [max(_apart(a, b) for a, b in zip(expected, each, strict=True)) for each in others]
    return (*apart,), (), not any(map(np.any, expected))


def _apart(expected: Array | None, got: Array | None) -> float:
    """Return the largest difference, relative to the largest value; infinity where a number is none."""
    if expected is None or got is None or not expected.size:
        return 0.0
    a, b = expected.astype(np.float64), got.astype(np.float64)
    difference = float(np.abs(a - b).max() / (np.abs(a).max() or 1))
    return difference if np.isfinite(difference) else float("inf")


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
        yield from (each for each in found if "embedder" not in each.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line of the table as each file is done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="FOLDER_OR_FILE")
    parser.add_argument("--steps", type=int, default=50, help="single tokens after the narrowest prefill (default: 50)")
    parser.add_argument("--window", type=int, default=16, help="of layers with a local mask (default: 16)")
    parser.add_argument("--tolerance", type=float, default=0.03, help="of the largest value (default: 0.03)")
    args = parser.parse_args(arguments)
    print(f"| {' | '.join(_HEAD)} |\n|{'---|' * len(_HEAD)}")
    good = True
    for path in _files(args.paths):
        row = rows(path, args.steps, args.window)
        print(f"| {' | '.join(row.cells())} |", flush=True)
        good &= row.good(args.tolerance)
    return int(not good)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    raise SystemExit(main())

"""A table of exporters' files: prefill and decode steps beside LiteRT's reference kernels, in numpy and on the device.

    PYTHONPATH=tests python -m tools.language_models FOLDER_OR_FILE... [--steps 50] [--window 16] [--tolerance 0.03]

Every ``.tflite`` file with signatures ``prefill_N`` and ``decode`` reads random tokens: each prefill, then single ones.
Logits and caches are compared, as the largest difference relative to the largest value. ``embedder.tflite`` beside a
file computes its embeddings; without one they are random. Other files are invoked once. The exit code is 1 if a file
differs by more than the tolerance, fails, or leaves nodes to the CPU.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
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

_HEAD = ("file", "LiteRT", "logits, numpy", "caches, numpy", "logits, device", "caches, device", "claimed", "launches")


@dataclass(frozen=True)
class Row:
    """What became of one file. reference: the kernels of LiteRT's that ran it, and whether they computed zeros alone.

    logits, caches: the largest differences of numpy and of the device. left: why nodes were left to the CPU. launches:
    of a decode step.
    """

    file: str
    reference: str
    logits: tuple[float, float] = (0.0, 0.0)
    caches: tuple[float, float] = (0.0, 0.0)
    claimed: str = ""
    left: tuple[str, ...] = ()
    launches: int = 0
    error: str = ""

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        numbers = [f"{x:.0e}" for pair in zip(self.logits, self.caches, strict=True) for x in pair]
        told = self.claimed + "".join(f"; {reason}" for reason in self.left)
        return [
            self.file,
            self.reference,
            *(["-"] * 4 if self.error else numbers),
            self.error or told,
            str(self.launches),
        ]

    def good(self, tolerance: float) -> bool:
        """Return whether all is as it should be."""
        return not self.error and not self.left and max(*self.logits, *self.caches) <= tolerance


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
    content = path.read_bytes()
    try:
        kernels = _litert(content)[0]
    except RuntimeError as error:
        return Row(path.name, "-", error=str(error))
    try:
        found = parts.read(path)
        interpreters = [
            Interpreter(read(found.model.content, found.model.find), delegates=d) for d in ([], [CLDelegate()])
        ]
        keys = interpreters[0].get_signature_list()
        differences = _steps if "decode" in keys else _invoke
        logits, caches, zeros = differences(content, found, interpreters, count, window)
        report = DelegationReport.of(interpreters[1])
    except (LiteclError, RuntimeError, ValueError) as error:
        return Row(path.name, kernels, error=f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
    left = tuple(sorted({f"{node.op}: {node.reason}" for node in report.nodes if not node.claimed}))
    claimed = f"{sum(node.claimed for node in report.nodes)} of {len(report.nodes)}"
    return Row(path.name, kernels + ", zeros" * zeros, logits, caches, claimed, left, report.counters.kernel_launches)


_Pair = tuple[float, float]


def _steps(
    content: bytes, found: parts.Parts, interpreters: Sequence[Interpreter], count: int, window: int
) -> tuple[_Pair, _Pair, bool]:
    """Return the largest differences of logits and of caches to LiteRT, of each interpreter, and if its are zeros."""
    embedders = _embedders(found, interpreters[0])
    models = [
        _Model(found, interpreters[0], embedders, window, lambda each: _Reference(_content(each, content, found)))
    ]
    models += [_Model(found, each, embedders, window, InterpreterRunner) for each in interpreters]
    widths = sorted({step.width or 8 for step in steps(interpreters[0])[0]}, reverse=True)
    logits, caches, zeros = [0.0, 0.0], [0.0, 0.0], True
    tokens = np.random.default_rng(1).integers(3, min(500, models[0].model.vocabulary), max(widths) + count).tolist()
    for width in widths or [0]:
        for each in models:
            each.begin()
        pieces = [tokens[:width]] * (width > 0)
        pieces += [[token] for token in tokens[width : width + count]] if width == min(widths, default=0) else []
        for piece in pieces:
            expected, *got = [each.read(piece) for each in models]
            zeros &= expected is None or not np.any(expected)
            for i, value in enumerate(got):
                logits[i] = max(logits[i], _apart(expected, value))
        expected_caches, *got_caches = [each.values() for each in models]
        for i, values in enumerate(got_caches):
            caches[i] = max(caches[i], *(_apart(expected_caches[name], values[name]) for name in values))
    return (logits[0], logits[1]), (caches[0], caches[1]), zeros


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


def _content(interpreter: Interpreter, content: bytes, found: parts.Parts) -> bytes:
    """Return the file of an interpreter: the model's, or an embedder's."""
    return content if len(interpreter.model.signatures) and _is_model(interpreter) else write(interpreter.model)


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
) -> tuple[_Pair, _Pair, bool]:
    """Return the same of the outputs of one invoke on random inputs."""
    results = []
    for interpreter in (_litert(content)[1], *interpreters):
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        for detail, value in zip(details, random_inputs(details, 0).values(), strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append([np.array(interpreter.get_tensor(each["index"])) for each in interpreter.get_output_details()])
    expected, *others = results
    first, second = (max(_apart(a, b) for a, b in zip(expected, each, strict=True)) for each in others)
    return (first, second), (0.0, 0.0), not any(map(np.any, expected))


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

"""Measures a language model's prefill and decode speed, litecl alone or in turns with LiteRT, on the same tokens."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.native.processors import processors
from litecl.generate import parts
from litecl.generate.model import LanguageModel, requires
from litecl.generate.runners import Caches
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.perf.peer_runner import PeerRunner
from litecl.perf.timing import PAUSE_S, Stats, Tick, no_tick


@dataclass(frozen=True)
class GenerationOptions:
    """prompt: number of random tokens to read. count: number of tokens to generate. rounds: how often.

    delegate: keywords of ``CLDelegate``; cpu: without it, but with its ``dynamic_range``. against: a name of ``PEERS``,
    measured with one thread and with as many as litecl may use.
    """

    prompt: int = 64
    count: int = 64
    rounds: int = 5
    delegate: Mapping[str, Any] = field(default_factory=dict)
    cpu: bool = False
    against: str | None = None


@dataclass(frozen=True)
class Speed:
    """A runtime's times for reading the whole prompt, and for every decode step."""

    name: str
    num_threads: int | None
    prefill: Stats
    decode: Stats
    prefill_tokens_per_s: float
    decode_tokens_per_s: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        rates = {name: getattr(self, name) for name in ("prefill_tokens_per_s", "decode_tokens_per_s")}
        named = {"name": self.name, "num_threads": self.num_threads}
        return named | rates | {"prefill": self.prefill.to_dict(), "decode": self.decode.to_dict()}


@dataclass(frozen=True)
class Comparison:
    """A peer's times over ours, medians and minima: above 1 means that litecl is faster.

    difference: the largest difference of logits, relative to the largest logit.
    """

    name: str
    num_threads: int
    prefill_ratio: float
    decode_ratio: float
    min_prefill_ratio: float
    min_decode_ratio: float
    difference: float


@dataclass(frozen=True)
class GenerationResult:
    """The runtimes, litecl first. report: litecl's delegation report, None without a delegate."""

    speeds: tuple[Speed, ...]
    comparisons: tuple[Comparison, ...]
    report: DelegationReport | None


def measure(path: Path, options: GenerationOptions, tick: Tick = no_tick) -> GenerationResult:
    """Measure a ``.litertlm``, ``.task`` or ``.tflite`` file. Raises ModelError if the tokens don't fit its context."""
    bundle = parts.read(path)
    delegate = None if options.cpu else CLDelegate(**options.delegate)
    interpreter, ours = _ours(bundle, delegate, options.delegate.get("dynamic_range"))
    if options.prompt + options.count > ours.context_length or options.prompt < 2:
        raise ModelError(
            f"expected 2 or more tokens of prompt, and {ours.context_length} at most with those that are generated, "
            f"got {options.prompt} and {options.count}"
        )
    threads = options.delegate.get("num_threads")
    models = {("litecl", threads): ours}
    if options.against is not None:
        for number in sorted({1, threads or processors()}):
            models[options.against, number] = _peer(bundle, options.against, number)
    timed = _Timed(models, options)
    for _ in range(options.rounds + 1):  # the first round warms up: drivers finish compiling, and caches fill
        timed.round()
        tick()
    report = None if delegate is None else DelegationReport.of(interpreter)
    return GenerationResult(timed.speeds(), timed.comparisons(), report)


class _Timed:
    """Times models in turns on the same tokens, for prompts and for decode steps."""

    def __init__(self, models: Mapping[tuple[str, int | None], LanguageModel], options: GenerationOptions) -> None:
        self._models = models
        self._options = options
        vocabulary = next(iter(models.values())).vocabulary
        self._prompt = np.random.default_rng(0).integers(0, vocabulary, options.prompt).tolist()
        self._prefill: dict[tuple[str, int | None], list[float]] = {key: [] for key in models}
        self._decode: dict[tuple[str, int | None], list[float]] = {key: [] for key in models}
        self._difference = dict.fromkeys(models, 0.0)
        self._rounds = 0

    def round(self) -> None:
        """Read the prompt and generate once. All models compute a token before the next."""
        caches = {key: model.caches() for key, model in self._models.items()}
        counted = self._rounds > 0
        for key, model in self._models.items():
            time.sleep(PAUSE_S)  # the previous model's threads may still spin
            seconds = _read(model, self._prompt[:-1], caches[key])
            self._prefill[key] += [seconds * 1e3] * counted
        tokens = [*self._prompt]
        for _ in range(self._options.count):
            logits = {}
            for key in self._models:
                logits[key], seconds = _step(self._models[key], tokens, caches[key])
                self._decode[key] += [seconds * 1e3] * counted
            first = next(iter(logits.values()))
            for key, theirs in logits.items():
                apart = float(np.abs(theirs - first).max() / (np.abs(first).max() or 1))
                self._difference[key] = max(self._difference[key], apart)
            tokens.append(int(first.argmax()))
        self._rounds += 1

    def speeds(self) -> tuple[Speed, ...]:
        """Return the speed of every model."""
        speeds = []
        for name, threads in self._models:
            prefill, decode = (Stats(tuple(each[name, threads])) for each in (self._prefill, self._decode))
            rates = (self._options.prompt - 1) / prefill.median_ms * 1e3, 1e3 / decode.median_ms
            speeds.append(Speed(name, threads, prefill, decode, *rates))
        return tuple(speeds)

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return how each peer compares."""
        ours, *peers = self.speeds()
        return tuple(
            Comparison(
                peer.name,
                peer.num_threads or 0,
                peer.prefill.median_ms / ours.prefill.median_ms,
                peer.decode.median_ms / ours.decode.median_ms,
                peer.prefill.min_ms / ours.prefill.min_ms,
                peer.decode.min_ms / ours.decode.min_ms,
                self._difference[peer.name, peer.num_threads],
            )
            for peer in peers
        )


def _read(model: LanguageModel, prompt: Sequence[int], caches: Caches) -> float:
    """Read a prompt; return the seconds it took."""
    pieces = model.pieces(len(prompt), 0)
    start_s, done = time.perf_counter(), 0
    for count in pieces:
        model.run(prompt[done : done + count], done, caches)
        done += count
    return time.perf_counter() - start_s


def _step(model: LanguageModel, tokens: Sequence[int], caches: Caches) -> tuple[Array, float]:
    """Run a decode step on the last token; return the logits and the seconds it took. The caches hold the others."""
    start_s = time.perf_counter()
    logits = model.run(tokens[-1:], len(tokens) - 1, caches)
    assert logits is not None
    return logits, time.perf_counter() - start_s


def _ours(
    bundle: parts.Parts, delegate: CLDelegate | None, dynamic_range: DynamicRange | None
) -> tuple[Interpreter, LanguageModel]:
    """Return litecl's interpreter and language model for a file."""
    delegates = [] if delegate is None else [delegate]
    interpret = partial(Interpreter, delegates=delegates, dynamic_range=dynamic_range)
    interpreters = {"": interpret(read(bundle.model.content, bundle.model.find))}
    for name in requires(interpreters[""]):
        if name in bundle.embedders:
            file = bundle.embedders[name]
            interpreters[name] = interpret(read(file.content, file.find))
    return interpreters[""], _model(bundle, interpreters)


def _model(bundle: parts.Parts, interpreters: Mapping[str, Interpreter], **run: Any) -> LanguageModel:
    embedders = {name: each for name, each in interpreters.items() if name}
    metadata = bundle.metadata
    return LanguageModel(interpreters[""], embedders, metadata.context_length, metadata.sliding_window, **run)


def _peer(bundle: parts.Parts, name: str, num_threads: int) -> LanguageModel:
    """Return the model run by a peer; litecl reads its signatures. Raises LiteclError if the peer can't run it."""
    files = {"": bundle.model, **bundle.embedders}
    interpreters = {key: Interpreter(read(file.content, file.find)) for key, file in files.items()}
    contents = {id(interpreters[key]): bytes(file.content) for key, file in files.items()}
    return _model(bundle, interpreters, run=lambda each: PeerRunner(name, contents[id(each)], num_threads))

"""``litecl generate``: streams text from a language model."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from litecl.cli.command import (
    Output,
    device_arguments,
    device_options,
    model_file,
    positive,
    progress,
    require_device,
)
from litecl.cli.tables import report_data, size
from litecl.delegate.naming import counted
from litecl.generate.generator import Generator
from litecl.generate.options import Generation, Piece
from litecl.interpreter.errors import MissingExtra, ModelError
from litecl.interpreter.visible import visible, visible_lines

HELP = "generate text with a language model (.litertlm, .task, .tflite with prefill and decode)"

EXAMPLES = """\
litecl generate model.litertlm --prompt "Once upon a time"
litecl generate model.litertlm --prompt "Once" --temperature 0.8 --top-p 0.95 --seed 1 --max-tokens 200
litecl generate model.tflite --tokenizer tokenizer.json --prompt "Once" --stop "." --stop "!"
litecl generate model.tflite --tokens 2,651,1902 --json        # without a tokenizer
cat question.txt | litecl generate model.litertlm --prompt -
"""
_NOTE = "The text goes to stdout as it comes, figures to stderr; with --json all is one object on stdout."


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.epilog = f"{parser.epilog}\n{_NOTE}"
    parser.add_argument("model", type=model_file, metavar="MODEL", help="a .litertlm, .task or .tflite file")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--prompt", metavar="TEXT", help="the text to continue; - reads it from stdin")
    given.add_argument("--tokens", type=_numbers, metavar="N,N,...", help="the prompt as token numbers")
    parser.add_argument(
        "--max-tokens", type=positive, default=128, metavar="N", help="maximum number of tokens (default: 128)"
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be repeated"
    )
    for flag, kind, text in _SAMPLING:
        parser.add_argument(flag, type=kind, metavar="N" if kind is int else "X", help=text)
    parser.add_argument("--whole", action="store_true", help="generate in one invoke, for temperature 0 or a top-k")
    parser.add_argument("--log-probs", action="store_true", help="with --json: log probabilities of every token")
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json, or a SentencePiece model")
    parser.add_argument(
        "--embedder", type=Path, metavar="FILE", help="the file that computes embeddings, if it is a file of its own"
    )
    parser.add_argument(
        "--context-length", type=positive, metavar="N", help="maximum number of tokens of prompt and text"
    )
    parser.add_argument(
        "--sliding-window", type=positive, metavar="N", help="window of local attention, if no file has it"
    )
    device_arguments(parser, cpu=True)


_SAMPLING = (
    ("--temperature", float, "0 takes the most likely token (default: the file's, else 0)"),
    ("--top-k", int, "draw from the N most likely tokens"),
    ("--top-p", float, "draw from the most likely tokens whose probabilities add up to this"),
    ("--repetition-penalty", float, "above 1: make earlier tokens less likely"),
    ("--seed", int, "seed of sampling; the same seed gives the same text"),
)


def run(args: argparse.Namespace) -> Output:
    """Stream text to stdout and figures to stderr; with ``--json``, return everything at the end."""
    with progress("preparing", None) as bar:
        generator = _generator(args, bar.building)
    with generator:
        require_device(args, generator.report())
        session = generator.session()
        stream = session.stream(_prompt(args), **_options(args))
        pieces = [*(stream if args.json else _shown(stream, _has_text(generator)))]
        generation = Generation.of(pieces, session.timing)
        data = _data(generator, generation, session.tokens)
        if args.json:
            return Output({"model": str(args.model), **data}, ())
        for line in _lines(data, generator):
            print(visible(line), file=sys.stderr)
    return Output(None, ())


def _generator(args: argparse.Namespace, building: Any) -> Generator:
    files = {"tokenizer": args.tokenizer, "embedder": args.embedder}
    sizes = {"context_length": args.context_length, "sliding_window": args.sliding_window}
    device = {**device_options(args), "cpu": args.cpu, "progress": building}
    return Generator(args.model, **files, **sizes, **device)


def _prompt(args: argparse.Namespace) -> Any:
    if args.prompt is None:
        return args.tokens
    text = sys.stdin.read() if args.prompt == "-" else args.prompt
    if not text:
        raise ModelError("--prompt: expected a text, got an empty one")
    return text


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given options; the file's settings apply to the rest."""
    names = [flag.removeprefix("--").replace("-", "_") for flag, *_ in _SAMPLING]
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    return given | {"max_tokens": args.max_tokens, "stop": args.stop, "log_probs": args.log_probs, "whole": args.whole}


def _has_text(generator: Generator) -> bool:
    with suppress(MissingExtra):
        return generator.tokenizer is not None
    return False


def _shown(pieces: Iterator[Piece], as_text: bool) -> Iterator[Piece]:
    """Write pieces to stdout as they arrive: text, or token numbers without a tokenizer."""
    for piece in pieces:
        text = visible_lines(piece) if sys.stdout.isatty() else piece  # files get the raw text
        sys.stdout.write(text if as_text else f"{piece.token} ")
        sys.stdout.flush()
        yield piece
    sys.stdout.write("\n")


def _data(generator: Generator, generation: Generation, tokens: Sequence[int]) -> dict[str, Any]:
    timing, report = generation.timing, generator.report()
    return {
        "prompt_tokens": [*tokens[: len(tokens) - len(generation.tokens)]],
        "text": generation.text,
        "tokens": [*generation.tokens],
        "log_probs": None if generation.log_probs is None else [*generation.log_probs],
        "finish": generation.finish,
        "prefill": _rate(timing.prefill_tokens, timing.prefill_s, timing.prefill_tokens_per_s),
        "decode": _rate(timing.decode_tokens, timing.decode_s, timing.decode_tokens_per_s),
        "memory": {
            "peak_resident_bytes": _peak_resident_bytes(),
            "device_bytes": generator.device_bytes,
            "cache_bytes": generator.cache_bytes,
        },
        "delegation": None if report is None else report_data(report),
    }


def _rate(tokens: int, seconds: float, rate: float) -> dict[str, float]:
    return {"tokens": tokens, "seconds": seconds, "tokens_per_s": rate}


def _lines(data: Mapping[str, Any], generator: Generator) -> list[str]:
    """Return the figures as lines."""
    prefill, decode, memory = data["prefill"], data["decode"], data["memory"]
    peak = memory["peak_resident_bytes"]
    report = generator.report()
    parts = ["all nodes on numpy"] if report is None else [*(f"WARNING: {w}" for w in report.warnings), report.lines[0]]
    return [
        f"prompt: {counted(prefill['tokens'], 'token')} at {prefill['tokens_per_s']:.1f} a second; "
        f"generated: {counted(decode['tokens'], 'token')} at {decode['tokens_per_s']:.1f} a second; "
        f"ended by: {data['finish']}",
        f"memory: {'' if peak is None else f'{size(peak)} of the process at its peak, '}"
        f"{size(memory['device_bytes'])} on the device, {size(memory['cache_bytes'])} of caches",
        *parts,
    ]


def _peak_resident_bytes() -> int | None:
    """Return this process's peak resident memory; None if the system doesn't report it."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected numbers of tokens such as 2,651,1902, got {text!r}")
    return [int(part) for part in parts]

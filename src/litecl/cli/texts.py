"""Flags and figures that commands of language models share."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from litecl.cli.command import count, device_arguments, device_options, model_file, number, positive
from litecl.cli.tables import report_data, size
from litecl.delegate import DelegationReport
from litecl.delegate.naming import counted
from litecl.generate.generator import Generator
from litecl.generate.options import Generation
from litecl.generate.sampling import BOUNDS


def _bounded(name: str) -> Callable[[str], float]:
    expected, fits = BOUNDS[name]
    return partial(number, expected=expected, fits=fits)


SAMPLING = (
    ("--temperature", _bounded("temperature"), "0 takes the most likely token (default: the file's, else 0)"),
    ("--top-k", positive, "draw from the N most likely tokens"),
    ("--top-p", _bounded("top_p"), "draw from the most likely tokens whose probabilities add up to this"),
    ("--repetition-penalty", _bounded("repetition_penalty"), "a number above 1 makes earlier tokens less likely"),
    ("--seed", count, "seed of sampling; the same seed gives the same text"),
)


def model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model file, the flags for the files and sizes that it needs, and its device."""
    parser.add_argument("model", type=model_file, metavar="MODEL", help="a .litertlm, .task or .tflite file")
    file_arguments(parser)
    device_arguments(parser, cpu=True)


def file_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare the flags for the files and sizes that a language model needs."""
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


def template_argument(parser: argparse._ActionsContainer) -> None:
    """Declare the flag for a chat template."""
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE",
        help="a chat template in Jinja, or a tokenizer_config.json that has one",
    )


def sampling_arguments(parser: argparse.ArgumentParser, max_tokens: int) -> None:
    """Declare the flags of a generation. max_tokens: the default."""
    parser.add_argument(
        "--max-tokens",
        type=positive,
        default=max_tokens,
        metavar="N",
        help=f"maximum number of tokens (default: {max_tokens})",
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be repeated"
    )
    for flag, kind, text in SAMPLING:
        parser.add_argument(flag, type=kind, metavar="N" if kind in (count, positive) else "X", help=text)


def read_stdin() -> str:
    """Return all of stdin; nothing if the shell has closed it."""
    return sys.stdin.read() if sys.stdin else ""


def generator_of(args: argparse.Namespace, building: Any) -> Generator:
    """Load the model. building: a progress callback."""
    files = {"tokenizer": args.tokenizer, "embedder": args.embedder, "template": getattr(args, "template", None)}
    sizes = {"context_length": args.context_length, "sliding_window": args.sliding_window}
    device = {**device_options(args), "cpu": args.cpu, "progress": building}
    return Generator(args.model, **files, **sizes, **device)


def sampling_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given options of a generation; the file's settings apply to the rest."""
    names = [flag.removeprefix("--").replace("-", "_") for flag, *_ in SAMPLING]
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    return given | {"max_tokens": args.max_tokens, "stop": args.stop}


def figures(generator: Generator, generation: Generation, tokens: Sequence[int]) -> dict[str, Any]:
    """Return what a generation made, and its figures. tokens: the session's."""
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
        "delegation": None if report is None else _delegation(report),
    }


def _delegation(report: DelegationReport) -> dict[str, Any]:
    """Return a report without its thousands of nodes, which ``litecl inspect --delegate --json`` has."""
    data = {name: value for name, value in report_data(report).items() if name not in ("nodes", "partitions")}
    return {"summary": report.lines[0], **data}


def _rate(tokens: int, seconds: float, rate: float) -> dict[str, float]:
    return {"tokens": tokens, "seconds": seconds, "tokens_per_s": rate}


def lines(data: Mapping[str, Any], generator: Generator) -> list[str]:
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

"""``litecl bench --generate``: measures a language model in tokens per second."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, device_options, positive, progress, require_device
from litecl.cli.tables import report_data, table
from litecl.delegate import DelegationReport
from litecl.delegate.naming import counted
from litecl.interpreter.errors import ModelError
from litecl.perf.doubts import busy, load
from litecl.perf.environment import header, named
from litecl.perf.generation import Comparison, GenerationOptions, GenerationResult, Speed, measure
from litecl.perf.peers.litert import RESOLVERS

BUNDLES = (".litertlm", ".task")

_ROUNDS = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of ``litecl bench`` for language models."""
    group = parser.add_argument_group("language models")
    group.add_argument(
        "--generate",
        action="store_true",
        help="measure prefill and decode in tokens a second (of bundles in any case), on a random prompt; --runs "
        f"generations, by default {_ROUNDS}",
    )
    group.add_argument(
        "--prompt-tokens", type=positive, default=64, metavar="N", help="number of tokens of the prompt (default: 64)"
    )
    group.add_argument(
        "--max-tokens", type=positive, default=64, metavar="N", help="maximum number of tokens (default: 64)"
    )


def is_asked_for(args: argparse.Namespace) -> bool:
    """Return whether to measure generation."""
    return args.generate or any(str(model).endswith(BUNDLES) for model in args.model)


def run(args: argparse.Namespace) -> Output:
    """Measure one model on one device."""
    load_before, rounds = load(), args.runs or _ROUNDS
    given = {name: _one(name, value) for name, value in device_options(args).items()}
    path, against = _one("model", args.model), _one("runtime to compare with", args.against)
    if against not in (None, *RESOLVERS):
        raise ModelError(f"--generate: expected --against {' or '.join(RESOLVERS)}, got {against}")
    with progress("measuring", rounds + 1) as bar:
        watched = {**given, "progress": bar.building}
        asked = GenerationOptions(args.prompt_tokens, args.max_tokens, rounds, watched, args.cpu, against)
        result = measure(path, asked, bar)
    require_device(args, result.report)
    warnings = busy(load_before)
    data = header("litecl bench") | {"warnings": warnings, "model": str(path), **_data(result)}
    data |= {"prompt_tokens": args.prompt_tokens, "generated_tokens": args.max_tokens, "rounds": rounds}
    lines = [*(f"WARNING: {line}" for line in warnings), *map(_compared, result.comparisons)]
    report = [] if result.report is None else [result.report]
    title = Text(f"a prompt of {counted(args.prompt_tokens, 'token')}, {args.max_tokens} generated, {rounds} times")
    return Output(data, [title, _view(result.speeds, result.report), *map(Text, lines), *report])


def _one(name: str, value: Any) -> Any:
    """Return the only value of a repeatable flag, None if there is none. Raises ModelError for several."""
    if not isinstance(value, list):
        return value
    if len(value) > 1:
        raise ModelError(f"--generate: expected one {name}, got {len(value)}")
    return value[0] if value else None


def _data(result: GenerationResult) -> dict[str, Any]:
    report = result.report
    return {
        "device": None if report is None else named(report.device),
        "speeds": [speed.to_dict() for speed in result.speeds],
        "comparisons": [asdict(each) for each in result.comparisons],
        "delegation": None if report is None else report_data(report),
    }


def _view(speeds: Sequence[Speed], report: DelegationReport | None) -> RenderableType:
    chosen = "auto" if report is None or report.threads is None else str(report.threads)
    view = table("runtime", "threads", "prefill tokens/s", "decode tokens/s", "prefill ms", "decode ms", "p5-p95 ms")
    for speed in speeds:
        decode = speed.decode
        view.add_row(
            speed.name,
            chosen if speed.num_threads is None else str(speed.num_threads),
            f"{speed.prefill_tokens_per_s:.4g}",
            f"{speed.decode_tokens_per_s:.4g}",
            f"{speed.prefill.median_ms:.4g}",
            f"{decode.median_ms:.4g}",
            f"{decode.percentile_ms(5):.4g}-{decode.percentile_ms(95):.4g}",
        )
    return view


def _compared(peer: Comparison) -> str:
    return (
        f"{peer.name} with {counted(peer.num_threads, 'thread')} takes {peer.prefill_ratio:.2f} times as long for "
        f"the prompt and {peer.decode_ratio:.2f} times as long for a token (at best {peer.min_prefill_ratio:.2f} and "
        f"{peer.min_decode_ratio:.2f}); logits differ by at most {peer.difference:.2g} of the largest"
    )

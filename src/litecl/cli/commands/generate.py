"""``litecl generate``: streams text from a language model."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from litecl.cli.command import Output, progress, require_device
from litecl.cli.texts import (
    figures,
    generator_of,
    lines,
    model_arguments,
    read_stdin,
    sampling_arguments,
    sampling_options,
)
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
PAGE = False
_NOTE = "The text goes to stdout as it comes, figures to stderr; with --json all is one object on stdout."


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.epilog = f"{parser.epilog}\n{_NOTE}"
    model_arguments(parser)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--prompt", metavar="TEXT", help="the text to continue; - reads it from stdin")
    given.add_argument("--tokens", type=_numbers, metavar="N,N,...", help="the prompt as token numbers")
    sampling_arguments(parser, max_tokens=128)
    parser.add_argument("--whole", action="store_true", help="generate in one invoke, for temperature 0 or a top-k")
    parser.add_argument(
        "--log-probs", action="store_true", help="with --json, add the log probabilities of every token"
    )


def run(args: argparse.Namespace) -> Output:
    """Stream text to stdout and figures to stderr; with ``--json``, return everything at the end."""
    with progress("preparing", None) as bar:
        generator = generator_of(args, bar.building)
    with generator:
        require_device(args, generator.report())
        session = generator.session()
        options = sampling_options(args) | {"log_probs": args.log_probs, "whole": args.whole}
        stream = session.stream(_prompt(args), **options)
        pieces = [*(stream if args.json else _shown(stream, _has_text(generator)))]
        generation = Generation.of(pieces, session.timing)
        data = figures(generator, generation, session.tokens)
        if args.json:
            return Output({"model": str(args.model), **data}, ())
        for line in lines(data, generator):
            print(visible(line), file=sys.stderr)
    return Output(None, ())


def _prompt(args: argparse.Namespace) -> Any:
    if args.prompt is None:
        return args.tokens
    text = read_stdin() if args.prompt == "-" else args.prompt
    if not text:
        raise ModelError("--prompt: expected a text, got an empty one")
    return text


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
    print(flush=True)  # before the figures, which go to stderr


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected numbers of tokens such as 2,651,1902, got {text!r}")
    return [int(part) for part in parts]

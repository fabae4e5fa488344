"""``litecl chat``: a conversation with a language model."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
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
    template_argument,
)
from litecl.generate.chat import ChatPiece, Reply
from litecl.generate.session import Session
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.visible import visible, visible_lines

HELP = "chat with a language model, by its chat template"
EXAMPLES = """\
litecl chat model.litertlm
litecl chat model.litertlm --system "Answer in one sentence." --temperature 0.8 --seed 1
echo "Why is the sky blue?" | litecl chat model.litertlm
litecl chat model.litertlm --messages conversation.json --tools tools.json --json
litecl chat model.tflite --tokenizer tokenizer.json --template chat_template.jinja
"""
PAGE = False
_NOTE = """\
Each line is a message. Ctrl-C ends a reply, Ctrl-D or /exit the conversation; /reset begins a new one. If stdin is no
terminal, all of it is one message. Replies go to stdout, thinking and figures to stderr; with --json all is one
object on stdout.
"""
_PROMPT = "> "
_KEYS = "/reset begins a new conversation, Ctrl-D or /exit ends it"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.epilog = f"{parser.epilog}\n{_NOTE}"
    model_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--prompt", metavar="TEXT", help="the only message; - reads it from stdin")
    given.add_argument(
        "--messages", type=Path, metavar="FILE", help="a JSON list of messages; the reply comes after it"
    )
    parser.add_argument("--tools", type=Path, metavar="FILE", help="a JSON list of the tools that the model may call")
    template_argument(parser)
    parser.add_argument(
        "--variable",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=JSON",
        help="a variable of the template, such as enable_thinking=false; may be repeated",
    )
    sampling_arguments(parser, max_tokens=1024)


def run(args: argparse.Namespace) -> Output:
    """Answer one message, or those that a terminal's user writes."""
    options = sampling_options(args) | {"variables": dict(args.variable)}
    options["tools"] = None if args.tools is None else _json_list(args.tools, "--tools")
    system = [] if args.system is None else [{"role": "system", "content": args.system}]
    talks = args.prompt is None and args.messages is None and not args.json and bool(sys.stdin and sys.stdin.isatty())
    messages = system if talks else [*system, *_messages(args)]
    with progress("preparing", None) as bar:
        generator = generator_of(args, bar.building)
    with generator:
        require_device(args, generator.report())
        if not generator.has_template:
            raise ModelError(f"{args.model}: it has no chat template: give one with --template, or use litecl generate")
        session = generator.session()
        if talks:
            _talk(session, messages, options)
            return Output(None, ())
        reply = session.chat(messages, **options) if args.json else _said(session.stream_chat(messages, **options))
        data = figures(generator, reply.generation, session.tokens)
        if args.json:
            answer = {"message": reply.message, "thinking": reply.thinking}
            return Output({"model": str(args.model), "messages": messages, **answer, **data}, ())
        for line in lines(data, generator):
            print(visible(line), file=sys.stderr)
    return Output(None, ())


def _talk(session: Session, messages: list[Any], options: Any) -> None:
    """Answer the messages of a terminal's user until the end of input. A message that fails is taken back."""
    with suppress(ImportError):
        import readline  # noqa: F401  # which lets input() edit a line
    start = len(messages)
    print(_KEYS, file=sys.stderr)
    while True:
        try:
            text = input(_PROMPT)
        except (EOFError, KeyboardInterrupt):
            print()
            return
        command = text.strip()
        if command == "/exit":
            return
        if re.fullmatch(r"|/\w+", command):
            if command == "/reset":
                del messages[start:]
            elif command:
                print(_KEYS, file=sys.stderr)
            continue
        messages.append({"role": "user", "content": text})
        try:
            reply = _said(session.stream_chat(messages, **options))
            messages.append(reply.message)
            if reply.finish in ("context", "max_tokens"):
                print(f"(ended by: {reply.finish})", file=sys.stderr)
        except KeyboardInterrupt:
            print("\n(interrupted: the message is taken back)", file=sys.stderr)
            messages.pop()
        except LiteclError as error:
            print(visible_lines(f"error: {error}\n(the message is taken back; {_KEYS})"), file=sys.stderr)
            messages.pop()


def _said(pieces: Iterator[ChatPiece]) -> Reply:
    """Write a reply as it arrives: content to stdout, thinking to stderr. Return it."""
    reply, thinks, escapes = None, False, sys.stderr.isatty()
    for piece in pieces:
        if (piece.part == "thinking") is not thinks and piece:
            thinks = piece.part == "thinking"
            _write(sys.stderr, (_DIM if escapes else "") if thinks else (_PLAIN if escapes else "") + "\n")
        if piece.part != "tool calls":
            out = sys.stderr if thinks else sys.stdout
            _write(out, visible_lines(piece) if out.isatty() else piece)
        reply = piece.reply
    assert reply is not None
    for call in reply.tool_calls:
        _write(sys.stdout, visible(f"[{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False)})]"))
    _write(sys.stdout, "\n")
    return reply


def _write(out: Any, text: str) -> None:
    out.write(text)
    out.flush()


def _messages(args: argparse.Namespace) -> list[Any]:
    if args.messages is not None:
        return _json_list(args.messages, "--messages")
    text = read_stdin() if args.prompt in (None, "-") else args.prompt
    if not text.strip():
        raise ModelError("expected a message, got an empty one")
    return [{"role": "user", "content": text.removesuffix("\n")}]


def _json_list(path: Path, flag: str) -> list[Any]:
    try:
        with open_regular(path) as file:
            value = json.loads(file.read())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{flag}: {path} cannot be read: {error}") from error
    if not isinstance(value, list):
        raise ModelError(f"{flag}: expected a JSON list in {path}, got {type(value).__name__}")
    return value


def _variable(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    try:
        if not (name.isidentifier() and separator):
            raise ValueError
        return name, json.loads(value)
    except (ValueError, RecursionError):
        raise argparse.ArgumentTypeError(f"expected NAME=JSON such as enable_thinking=false, got {text!r}") from None

"""``litecl serve``: serves a model over HTTP, a language model by OpenAI's protocol."""

import argparse
import errno
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.text import Text

from litecl.cli.command import (
    A_MODEL,
    Output,
    count,
    device_arguments,
    device_options,
    model_file,
    number,
    numbers_argument,
    numbers_view,
    positive,
    progress,
    require_device,
    seconds,
)
from litecl.cli.generation import BUNDLES
from litecl.cli.texts import file_arguments, generator_of, template_argument
from litecl.generate import signatures
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import MissingExtra, ModelError
from litecl.interpreter.visible import visible
from litecl.predictor import Predictor
from litecl.serve.batching import prepare, why_apart
from litecl.serve.protocol import body_limit

HELP = "serve a model over HTTP (Open Inference Protocol), a language model by OpenAI's protocol"
EXAMPLES = """\
litecl serve model.tflite
litecl serve model.tflite --host 0.0.0.0 --port 9000 --name digits
litecl serve model.tflite --batch 64 --wait-ms 2 --buffers 2 --threads 2
litecl serve model.tflite --batch 1 --device pocl --require-device
litecl serve model.litertlm --sessions 8
litecl serve model.tflite --generate --tokenizer tokenizer.json --template chat_template.jinja
"""
PAGE = False
_MS = 1e3
_BATCH, _SESSIONS = 32, 4


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("model", type=model_file, metavar="MODEL", help=f"{A_MODEL}, or a .litertlm or .task file")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="the port (default: 8000; 0: one that is free)")
    parser.add_argument("--name", help="the model's name in addresses (default: that of its file)")
    parser.add_argument("--signature", metavar="KEY", help="serve this signature of the model")
    parser.add_argument(
        "--batch", type=positive, default=_BATCH, metavar="N", help="maximum number of rows of a batch (default: 32)"
    )
    parser.add_argument(
        "--wait-ms",
        type=_ms,
        default=0.0,
        metavar="MS",
        help="how long a request waits for others (default: 0; those that come during a batch share the next one)",
    )
    parser.add_argument(
        "--waiting", type=positive, default=256, metavar="N", help="maximum number of waiting requests (default: 256)"
    )
    parser.add_argument(
        "--most-bytes",
        type=positive,
        metavar="N",
        help="maximum size of a request (default: what --batch rows take as JSON)",
    )
    parser.add_argument(
        "--client-s",
        type=seconds,
        default=30.0,
        metavar="S",
        help="time that a client has to send a request or read its answer (default: 30)",
    )
    parser.add_argument(
        "--answer-s", type=seconds, default=300.0, metavar="S", help="time limit of an answer (default: 300)"
    )
    parser.add_argument(
        "--grace-s", type=seconds, default=10.0, metavar="S", help="time from a signal to the end (default: 10)"
    )
    parser.add_argument(
        "--connections", type=positive, default=512, metavar="N", help="maximum number of connections (default: 512)"
    )
    parser.add_argument(
        "--buffers", type=positive, default=1, metavar="N", help="number of batches at once per device (default: 1)"
    )
    device_arguments(parser, cpu=True)
    numbers_argument(parser)
    texts = parser.add_argument_group("language models", "For .litertlm and .task files, or with --generate.")
    texts.add_argument("--generate", action="store_true", help="serve a .tflite file with prefill and decode for texts")
    texts.add_argument(
        "--sessions",
        type=positive,
        default=_SESSIONS,
        metavar="N",
        help="number of texts generated at once (default: 4)",
    )
    file_arguments(texts)
    template_argument(texts)


def run(args: argparse.Namespace) -> Output:
    """Load and compile the model, then serve it until a signal stops the process."""
    try:
        for package in ("fastapi", "uvicorn"):
            import_module(package)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"a server needs {error.name}: pip install 'litecl[serve]'") from error
    if args.generate or str(args.model).endswith(BUNDLES):
        return _run_texts(args)
    files = dict.fromkeys(("tokenizer", "embedder", "context_length", "sliding_window", "template"))
    _require_defaults(args, "without --generate", **files, sessions=_SESSIONS)
    from litecl.serve.app import Serving, app

    if args.signature is None:
        _hint(args.model)
    with progress("preparing", None) as bar:
        options = device_options(args) | {"progress": bar.building}
        options |= {"signature": args.signature, "cpu": args.cpu, "require_device": args.require_device}
        options |= {"numbers": args.numbers}
        apart = _why_apart(args, options)
        predictor = Predictor(args.model, buffers=args.buffers, **options)
        if apart is None:
            prepare(predictor, args.batch)
    name = _name(args.name or Path(args.model).stem)
    if predictor.keeps_states:
        _check_states(predictor, name)
    serving = Serving(
        name,
        together=apart is None,
        most_rows=args.batch,
        wait_s=args.wait_ms / _MS,
        most_waiting=args.waiting,
        most_bytes=args.most_bytes or body_limit(predictor.inputs, args.batch),
        client_s=args.client_s,
        answer_s=args.answer_s,
    )
    note = "".join(f"; {text}" for text in numbers_view(args.numbers))
    note += f"; a request is a batch, because {apart}" if apart else ""
    who, path = f"{name} on {', '.join(predictor.devices)}", f"/v2/models/{quote(name, safe='')}"
    served = app(predictor, serving)
    with predictor:
        return _served(args, *served, who, path, note)


def _run_texts(args: argparse.Namespace) -> Output:
    """Serve a language model."""
    from litecl.serve.text_app import TextServing, text_app

    if args.signature is not None or args.buffers != 1:
        raise ModelError("--signature and --buffers are not for language models: --sessions says how many run at once")
    _require_defaults(args, "with a language model", batch=_BATCH, wait_ms=0.0, numbers="reference")
    with progress("preparing", None) as bar:
        generator = generator_of(args, bar.building)
        require_device(args, generator.report())
    name = _name(args.name or Path(args.model).stem)
    serving = TextServing(
        name,
        args.sessions,
        most_waiting=args.waiting,
        most_bytes=args.most_bytes or TextServing.most_bytes,
        client_s=args.client_s,
        answer_s=args.answer_s,
    )
    note = "" if generator.has_template else "; no chat template (--template): /v1/completions only"
    served = text_app(generator, serving)
    with generator:
        return _served(args, *served, name, "/v1", note)


def _served(args: argparse.Namespace, application: Any, metrics: Any, who: str, path: str, note: str) -> Output:
    """Serve an application until a signal stops the process. who, path, note: say what is where, on stderr."""
    from litecl.serve.connections import Bounds, serve

    with _listening(args.host, args.port) as listener:
        host = f"[{args.host}]" if ":" in args.host else args.host
        address = f"http://{host}:{listener.getsockname()[1]}{path}"
        print(visible(f"{who}: {address}{note}"), file=sys.stderr, flush=True)
        serve(application, listener, Bounds(args.connections, args.client_s, args.grace_s))
    return Output({"model": str(args.model), "requests": metrics.requests}, [Text(f"{metrics.requests} requests")])


def _hint(model: str | Path) -> None:
    """Say on stderr what a language model needs to be served as one."""
    with suppress(ModelError):
        signatures.steps(Interpreter(model))
        print("note: a language model, by its signatures: --generate serves it for texts", file=sys.stderr, flush=True)


def _require_defaults(args: argparse.Namespace, why: str, **defaults: Any) -> None:
    """Raise ModelError for flags that are not for this kind of model."""
    if given := [f"--{name.replace('_', '-')}" for name, value in defaults.items() if getattr(args, name) != value]:
        raise ModelError(f"{', '.join(given)}: no effect {why}")


def _name(text: str) -> str:
    """Return a model's name as valid UTF-8. Raises ModelError for one that can't be part of a URL."""
    name = text.encode(errors="replace").decode()
    if name.endswith(("/infer", "/ready")) or {".", ".."} & {*name.split("/")}:
        raise ModelError(
            "--name: expected one without '.' and '..' as a part, and without /infer and /ready at its end"
        )
    return name


def _check_states(predictor: Predictor, name: str) -> None:
    """Warn that clients share states. Raises ModelError if several buffers would each have their own."""
    if predictor.at_once > 1:
        at_once = predictor.at_once
        predictor.close()
        raise ModelError(f"--buffers: the model keeps states, which {at_once} buffers would each have: expected 1")
    warning = f"warning: {name} keeps states, which all clients share: a request changes the results of later ones"
    print(visible(warning), file=sys.stderr, flush=True)


def _why_apart(args: argparse.Namespace, options: dict[str, Any]) -> str | None:
    """Return why requests can't share batches; None if they can."""
    if args.batch == 1:
        return "--batch is 1"
    with Predictor(args.model, **options) as tried:
        return why_apart(tried)


def _listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise OSError(error.errno, f"port {port} of {host} is in use: choose another with --port") from error


def _port(text: str) -> int:
    number = count(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"expected a port up to 65535, got {number}")
    return number


def _ms(text: str) -> float:
    return number(text, "milliseconds from 0 to 60000", lambda value: 0 <= value <= 60_000)

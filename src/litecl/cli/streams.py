"""``litecl run --stream``: runs a model on a whole sound, chunk by chunk, and shows its answers over time."""

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from litecl.cli.answers import TOP, unfit
from litecl.cli.classes import labels_of, scores_of, top
from litecl.cli.command import media_of, milliseconds, resize
from litecl.cli.entry import Entry
from litecl.cli.tables import line, number, table, titled
from litecl.interpreter import Interpreter, graph
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.jobs.chunks import Chunks, chunks_of, is_sound
from litecl.jobs.given import load_inputs
from litecl.perf.feeds import Details, labels, outputs_of, prepare, random_inputs

_WIDEST = 72  # most characters of a chart
_HEIGHTS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"  # the second for ASCII terminals
_MOST_ROWS = 24


def stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    group = parser.add_argument_group("sounds that are longer than the input")
    group.add_argument(
        "--stream",
        action="store_true",
        help="give the model all of a sound in chunks; it keeps its states between them",
    )
    group.add_argument(
        "--every-ms",
        type=milliseconds,
        metavar="MS",
        help="time from one chunk to the next (default: chunks do not overlap)",
    )


def refuse(args: argparse.Namespace) -> None:
    """Raise ModelError for incompatible flags."""
    if not args.stream:
        if args.every_ms is not None:
            raise ModelError("--every-ms: expected --stream with it")
        return
    given = [name for name in ("draw", "profile_to") if getattr(args, name) is not None]
    if given:
        raise ModelError(f"--stream: --{given[0].replace('_', '-')} has no effect with it")


def begun(args: argparse.Namespace, entry: Entry) -> Chunks:
    """Prepare a model for the chunks of a sound, and return the chunks. Raises ModelError."""
    resize(entry, args.shape)
    details, media = entry.get_input_details(), media_of(args, entry)
    chunks = chunks_of(args.input, details, media, args.every_ms)
    if chunks.every_s < chunks.size_s and keeps_states(entry.interpreter):
        raise ModelError(
            f"--every-ms: the model keeps states from chunk to chunk, which overlap: expected {1e3 * chunks.size_s:g}"
        )
    others = load_inputs([argument for argument in args.input if not is_sound(argument)], details, media)
    prepare(entry, {**random_inputs(details, args.random), **others, chunks.label: chunks.at(0)})
    return chunks


def keeps_states(interpreter: Interpreter) -> bool:
    """Return whether a model writes variables."""
    model = interpreter.model
    return any(graph.keeps_states(model, entry) for entry in graph.entries(model))


def streamed(entry: Entry, chunks: Chunks) -> list[Array]:
    """Run a model on chunks; return its outputs [chunks, ...]. Raises ModelError if an output's shape changes."""
    details = entry.get_input_details()
    index = dict(zip(labels(details), details, strict=True))[chunks.label]["index"]
    outputs: list[list[Array]] = []
    for chunk in range(chunks.count):
        entry.set_tensor(index, chunks.at(chunk))
        entry.invoke()
        outputs.append(outputs_of(entry))
    try:
        return [np.stack(values) for values in zip(*outputs, strict=True)]
    except ValueError as error:
        raise ModelError(f"--stream: expected outputs of one shape for all chunks: {error}") from error


def over_time(
    args: argparse.Namespace, details: Sequence[Details], results: Sequence[Array], chunks: Chunks, data: dict[str, Any]
) -> list[RenderableType]:
    """Add all chunks' answers to a run's data, and return views of them over time.

    An output with one number per chunk becomes a chart. One with classes becomes a table of the likeliest class, if
    there are labels or --top is given.
    """
    views, outputs = list[RenderableType](), list[dict[str, Any]]()
    names = labels_of(Path(args.model), args.labels)
    for name, detail, array in zip(labels(details), details, results, strict=True):
        if array.size == chunks.count and array.dtype.kind in "fiu":
            scores = scores_of(array, detail).reshape(-1)
            outputs.append(
                {"name": name, "scores": scores.tolist(), "highest_at_s": int(scores.argmax()) * chunks.every_s}
            )
            views += [line(_highest(name, scores, chunks)), Chart(scores, chunks.count * chunks.every_s)]
        elif names is None and args.top is None:
            continue
        elif (rows := top(array, detail, names, args.top or TOP)) is not None and len(rows) == chunks.count:
            outputs.append({"name": name, "top": rows})
            views.append(_classes(name, rows, chunks))
    if names is not None and args.labels is not None and not any("top" in each for each in outputs):
        raise unfit(names, results)
    data["stream"] = {"chunks": chunks.count, "every_s": chunks.every_s, "outputs": outputs}
    return views


def _highest(name: str, scores: Array, chunks: Chunks) -> str:
    at = int(scores.argmax())
    when = f"from {at * chunks.every_s:.2f} to {at * chunks.every_s + chunks.size_s:.2f} s"
    return f"{name} over time: at most {number(float(scores[at]))}, {when}"


def _classes(name: str, rows: Sequence[Sequence[dict[str, Any]]], chunks: Chunks) -> RenderableType:
    """Return a table of the likeliest class over time, with a row per run of chunks of the same class."""
    view, shown, at = table("from s", "to s", "class", "highest score", "index"), 0, 0
    for _, same in groupby((row[0] for row in rows), lambda likeliest: likeliest["index"]):
        alike = [*same]
        if shown < _MOST_ROWS:
            times = f"{at * chunks.every_s:.2f}", f"{(at + len(alike) - 1) * chunks.every_s + chunks.size_s:.2f}"
            best = max(each["score"] for each in alike)
            view.add_row(*times, alike[0]["label"], f"{best:.4f}", str(alike[0]["index"]))
        shown, at = shown + 1, at + len(alike)
    left = f", {shown - _MOST_ROWS} rows left out" if shown > _MOST_ROWS else ""
    return titled(f"likeliest class of {name} over time{left}", view)


@dataclass(frozen=True)
class Chart:
    """Numbers over time as a line of characters, scaled from 0 to 1, or from minimum to maximum beyond that range."""

    values: Array
    duration_s: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the line, as wide as the terminal allows, and its start and end times."""
        heights = _HEIGHTS[options.ascii_only]
        low, high = min(0.0, float(self.values.min())), max(1.0, float(self.values.max()))
        if low < 0 or high > 1:
            low, high = float(self.values.min()), float(self.values.max())
        parts = np.array_split(self.values, min(options.max_width, _WIDEST, len(self.values)))
        shares = [(float(part.max()) - low) / ((high - low) or 1.0) for part in parts]
        yield Text("".join(heights[round(share * (len(heights) - 1))] for share in shares), no_wrap=True)
        end = f"{self.duration_s:.2f} s"
        yield Text("0 s".ljust(max(4, len(parts) - len(end))) + end, no_wrap=True)

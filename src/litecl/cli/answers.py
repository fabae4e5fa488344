"""Interprets outputs of ``litecl run`` for people: flags, and tables of classes and boxes."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litecl.cli.boxes import Detection, detections, draw
from litecl.cli.classes import Labels, labels_of, top
from litecl.cli.command import finite, positive
from litecl.cli.outputs import OutputFile
from litecl.cli.tables import table, titled
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.jobs.given import READERS
from litecl.perf.feeds import Details

TOP = 5  # classes to show if their names are known
_MOST_ROWS = 16  # per output, in a table


def answer_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    group = parser.add_argument_group("answers")
    group.add_argument(
        "--labels", type=Path, metavar="FILE", help="names of classes, a line each (default: those in the model's file)"
    )
    group.add_argument("--top", type=positive, metavar="K", help="show the K likeliest classes (with labels: 5)")
    group.add_argument(
        "--draw", type=OutputFile(), metavar="FILE.png", help="write the input image with the boxes of a detector"
    )
    group.add_argument(
        "--least", type=finite, default=0.5, metavar="SCORE", help="lowest score of the boxes to show (default: 0.5)"
    )


def refuse_with_many(args: argparse.Namespace) -> None:
    """Raise ModelError for flags that only apply to a single run."""
    given = [name for name in ("labels", "top", "draw", "profile_to", "stream", "every_ms") if getattr(args, name)]
    if given:
        raise ModelError(f"--inputs: --{', --'.join(given).replace('_', '-')} have no effect with it")


def answers(
    args: argparse.Namespace, interpreter: Interpreter, results: Sequence[tuple[Details, Array]], data: dict[str, Any]
) -> list[RenderableType]:
    """Add the likeliest classes and boxes to a run's data, and return their tables. Raises ModelError."""
    names = labels_of(Path(args.model), args.labels)
    boxes = detections(interpreter, names, args.least) if args.signature is None else None
    if args.draw is not None:
        if boxes is None:
            raise ModelError("--draw: expected a model that ends in TFLite_Detection_PostProcess")
        draw(_image_given(args), boxes, args.draw)
    if boxes is not None:
        data["detections"] = [asdict(each) for each in boxes]
        return [_boxes(boxes, args.least)] + ([Text(str(args.draw))] if args.draw is not None else [])
    if names is None and args.top is None:
        return []
    views, count = list[RenderableType](), args.top or TOP
    for value, (detail, array) in zip(data["outputs"], results, strict=True):
        if (rows := top(array, detail, names, count)) is not None:
            value["top"] = rows
            views.append(_classes(value["name"], rows))
    if not views and args.labels is not None and names is not None:
        raise unfit(names, [array for _, array in results])
    return views


def unfit(names: Labels, results: Sequence[Array]) -> ModelError:
    """Return the error for labels whose number fits no output."""
    sizes = ", ".join(str(array.shape[-1] if array.ndim else 0) for array in results)
    return ModelError(f"--labels: {names.source} has {names.count} names, expected as many as an output has: {sizes}")


def _image_given(args: argparse.Namespace) -> Path:
    """Return the only input file, an image. Raises ModelError for another number of files, or another kind."""
    files = [Path(argument.rpartition("=")[2]) for argument in args.input]
    if len(files) != 1 or not files[0].is_file() or files[0].suffix.lower() in READERS:
        raise ModelError("--draw: expected --input with one image")
    return files[0]


def _classes(name: str, rows: Sequence[Sequence[dict[str, Any]]]) -> RenderableType:
    """Return a table of an output's likeliest classes, with a row column if there are several rows."""
    several = len(rows) > 1
    view = table(*(("row",) if several else ()), "class", "score", "index")
    for number, row in enumerate(rows[:_MOST_ROWS]):
        for one in row:
            view.add_row(*((str(number),) if several else ()), one["label"], f"{one['score']:.4f}", str(one["index"]))
    left = len(rows) - _MOST_ROWS
    return titled(f"likeliest classes of {name}" + (f", {left} rows left out" if left > 0 else ""), view)


def _boxes(boxes: Sequence[Detection], least: float) -> RenderableType:
    view: Table = table("class", "score", "left", "top", "right", "bottom")
    for each in boxes:
        view.add_row(each.label, f"{each.score:.4f}", *(f"{edge:.3f}" for edge in each.box))
    return titled(f"{len(boxes)} boxes with a score of at least {least:g}", view)

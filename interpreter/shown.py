"""How Python and notebooks show an interpreter: its source, inputs and outputs, and a delegate's share."""

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from litecl.interpreter.delegation import Report
from litecl.interpreter.errors import brief
from litecl.interpreter.html import block, paragraph, table
from litecl.interpreter.visible import visible

_MOST_TENSORS = 4  # per line, of inputs or outputs
_MOST_NAME = 60
Details = Sequence[Mapping[str, Any]]


def source_name(arguments: Mapping[str, Any]) -> str:
    """Return the name of a model's file, or a description of another source."""
    given = arguments["model_path"] if arguments["model_path"] is not None else arguments["model_content"]
    if isinstance(given, str | os.PathLike):
        return visible(brief(PurePath(given).name, _MOST_NAME))
    return f"{len(given):,} bytes" if isinstance(given, bytes | bytearray | memoryview) else "a Model"


def line(inputs: Details, outputs: Details) -> str:
    """Return inputs and outputs with their types and shapes."""
    return f"{_tensors(inputs)} -> {_tensors(outputs)}"


def state(nodes: int, report: Report | None, *, allocated: bool) -> str:
    """Return how many nodes a delegate runs, or that tensors are not allocated."""
    if not allocated:
        return "not allocated"
    own = f"{nodes} node" + ("" if nodes == 1 else "s")
    return own if report is None else f"{report.claimed} of {len(report.nodes)} nodes on the device"


def html(title: str, inputs: Details, outputs: Details, report: Report | None) -> str:
    """Return the same as HTML, with a row for every input and output, and the delegate's report."""
    rows = [_row(kind, one) for kind, many in (("input", inputs), ("output", outputs)) for one in many]
    delegated = "" if report is None else report._repr_html_()
    return block(paragraph(title), table(("", "name", "type", "shape"), rows)) + delegated


def _tensors(details: Details) -> str:
    tensors = [f"{_name(one)} {_type(one)}{_shape(one)}" for one in details[:_MOST_TENSORS]]
    return ", ".join(tensors + (["..."] if len(details) > _MOST_TENSORS else [])) or "nothing"


def _name(one: Mapping[str, Any]) -> str:
    return visible(brief(str(one["name"]), _MOST_NAME))


def _row(kind: str, one: Mapping[str, Any]) -> Sequence[str]:
    return kind, visible(str(one["name"])), _type(one), _shape(one)


def _type(one: Mapping[str, Any]) -> str:
    return str(getattr(one["dtype"], "__name__", one["dtype"]))


def _shape(one: Mapping[str, Any]) -> str:
    """Return the shape, with -1 for open dimensions."""
    signature = one["shape_signature"]
    return f"[{','.join(map(str, signature if len(signature) == len(one['shape']) else one['shape']))}]"

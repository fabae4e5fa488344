"""``litecl where``: says in which runtimes a model's nodes run, and with which numbers."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, count, model_argument, positive
from litecl.cli.places import measured, measured_view, names_of, notes, shown_nodes
from litecl.cli.tables import table, titled
from litecl.interpreter.file.reader import read
from litecl.where import table as tables
from litecl.where.places import Place, runtimes_of, where
from litecl.where.table import DIFFERS, LEFT, PLACED, REFUSES, RUNS, SAME, STATUSES, UNKNOWN, Table, Verdict

HELP = "say which nodes other runtimes run, refuse, or compute otherwise, and what to change"
EXAMPLES = """\
litecl where model.tflite
litecl where model.tflite --runtime tflite_micro --runtime openvino
litecl where model.tflite --measure              # run it on what is installed, too
litecl where model.tflite --json
"""
_STYLES = {
    SAME: "green",
    RUNS: "green",
    PLACED: "green",
    REFUSES: "red",
    LEFT: "red",
    DIFFERS: "yellow",
    UNKNOWN: "dim",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME",
        help="litert, litert-reference, tflite_micro (or tflm), openvino, onnxruntime (by tf2onnx), vela (for "
        "Ethos-U), litecl, or edgetpu (by its published list); may be repeated (default: all)",
    )
    parser.add_argument("--nodes", action="store_true", help="list every node, not every kind of node")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="use a table from `litecl verify --table` (default: litecl's own)"
    )
    parser.add_argument(
        "--measure", action="store_true", help="also run the model on random inputs in the runtimes that are installed"
    )
    parser.add_argument(
        "--random", type=count, default=0, metavar="SEED", help="seed of --measure's inputs (default: 0)"
    )
    parser.add_argument(
        "--timeout", type=positive, default=120, metavar="S", help="time limit of --measure in seconds (default: 120)"
    )


def run(args: argparse.Namespace) -> Output:
    """Say where the nodes run."""
    known = tables.shipped() if args.table is None else tables.read(args.table)
    names = names_of(args.runtime, known)
    model = read(args.model)
    places = where(model, known, names)
    runtimes = [asdict(runtimes_of(known)[name]) for name in names]
    data: dict[str, Any] = {"model": str(args.model), "runtimes": runtimes, "nodes": [*map(_data, places)]}
    view = [_summary(places, known, names), _kinds(places, names, single=args.nodes), *notes(places, names)]
    if args.measure:
        results = measured(Path(args.model).read_bytes(), names, args.random, args.timeout)
        data["measured"] = [asdict(one) for one in results]
        view.append(titled("the whole model, on random inputs", measured_view(results)))
    return Output(data, view)


def _data(place: Place) -> dict[str, Any]:
    verdicts = {
        name: asdict(verdict) | {"changes": place.changes.get(name, ())} for name, verdict in place.verdicts.items()
    }
    head = {"subgraph": place.subgraph, "node": place.node, "op": place.kind.op, "kind": str(place.kind)}
    return head | {"runtimes": verdicts}


def _summary(places: Sequence[Place], known: Table, names: Sequence[str]) -> RenderableType:
    counts = {name: Counter(place.verdicts[name].status for place in places) for name in names}
    statuses = [status for status in STATUSES if any(of[status] for of in counts.values())]
    view = table("runtime", "version", *statuses)
    for name, of in counts.items():
        view.add_row(name, runtimes_of(known)[name].version, *(str(of[status] or "") for status in statuses))
    return titled("nodes by runtime", view)


def _kinds(places: Sequence[Place], names: Sequence[str], *, single: bool) -> RenderableType:
    groups: dict[tuple[Any, ...], list[Place]] = {}
    for place in places:
        groups.setdefault((place.subgraph, place.node) if single else (str(place.kind),), []).append(place)
    view = table("nodes", "operator", *names)
    for group in groups.values():
        operands = ", ".join(group[0].kind.operands[:2])
        cells = [_cell(group[0].verdicts[name]) for name in names]
        view.add_row(shown_nodes([p.label for p in group]), f"{group[0].kind.op} {operands}", *cells)
    return titled("each node" if single else "each kind of node", view)


def _cell(verdict: Verdict) -> Text:
    return Text(str(verdict), _STYLES.get(verdict.status, ""))

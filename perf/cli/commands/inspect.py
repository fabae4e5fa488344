"""``litecl inspect``: what is in a model, and which of it the device takes."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report import NodeRow
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.perf.cli.command import Output, device_arguments, device_options, model_argument, progress
from litecl.perf.cli.summaries import summary_view
from litecl.perf.cli.tables import placed, report_data, table
from litecl.perf.measure.summary import NodeLine, node_lines, summarize

HELP = "show what is in a model"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument("--nodes", action="store_true", help="list every node with its tensors and options")
    parser.add_argument(
        "--delegate", action="store_true", help="show which nodes the device takes, and why not the others"
    )
    device_arguments(parser)


def run(args: argparse.Namespace) -> Output:
    """Summarize a model, and what the delegate makes of it if asked to."""
    model = read(args.model)
    summary = summarize(model)
    data: dict[str, Any] = {"model": str(args.model), **asdict(summary)}
    view = [summary_view(args.model.name, summary)]
    delegation = None
    if args.delegate or args.dump_passes:
        with progress("preparing", None) as bar:
            interpreter = Interpreter(model, delegates=[CLDelegate(**device_options(args), progress=bar.building)])
            interpreter.allocate_tensors()
        delegation = DelegationReport.of(interpreter)
        data["delegation"] = report_data(delegation)
    if args.nodes:
        lines = node_lines(model)
        data["nodes"] = [asdict(line) for line in lines]
        view.append(_nodes(lines, () if delegation is None else delegation.nodes))
    if delegation is not None:
        view.append(delegation)
    return Output(data, view)


def _nodes(lines: Sequence[NodeLine], rows: Sequence[NodeRow] = ()) -> RenderableType:
    """Every node, with the place where it runs if a delegate was asked."""
    by_place = {(row.subgraph, row.node): row for row in rows}
    made = table("subgraph", "node", "operator", "tensors and options", *(("where",) if rows else ()))
    for line in lines:
        row = by_place.get((line.subgraph, line.node))
        tensors = [*(f"<- {name}" for name in line.inputs), *(f"-> {name}" for name in line.outputs)]
        made.add_row(
            str(line.subgraph),
            str(line.node),
            f"{line.op} v{line.version}",
            "\n".join([*tensors, *([line.options.replace("\n", " ")] if line.options else [])]),
            *(() if row is None else (placed(row.claimed, row.reason),)),
        )
    return made

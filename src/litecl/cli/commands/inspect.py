"""``litecl inspect``: shows a model's contents, and which parts the device runs."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from litecl.cli.command import Output, device_arguments, device_options, model_argument, progress
from litecl.cli.outputs import OutputFile
from litecl.cli.summaries import summary_view, tensors_view
from litecl.cli.tables import lines, placed, report_data, table, titled, to_json
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report import NodeRow
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.overwritten import difference
from litecl.interpreter.whole_files import put_text
from litecl.perf.node_data import places
from litecl.perf.summary import NodeLine, node_lines, stored_tensors, summarize

HELP = "show a model's operators, tensors and signatures"
EXAMPLES = """\
litecl inspect model.tflite
litecl inspect model.tflite --nodes --tensors
litecl inspect model.tflite --delegate                  # where nodes run, and why
litecl inspect hf://OWNER/REPOSITORY/model.tflite --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    model_argument(parser)
    parser.add_argument("--nodes", action="store_true", help="list every node with its tensors and options")
    parser.add_argument("--tensors", action="store_true", help="list every tensor with its bytes, scale and zero point")
    parser.add_argument(
        "--delegate", action="store_true", help="show which nodes the device runs, and the reasons of the others"
    )
    parser.add_argument(
        "--node-data",
        type=OutputFile(),
        metavar="FILE",
        help="write where nodes run, as node data for Model Explorer",
    )
    device_arguments(parser)


def run(args: argparse.Namespace) -> Output:
    """Summarize a model and, if requested, how the delegate would run it."""
    model = read(args.model)
    summary = summarize(model)
    data: dict[str, Any] = {"model": str(args.model), **asdict(summary)}
    view = [summary_view(args.model.name, summary)]
    if differs := difference(model):
        data["difference"] = differs
        view.append(Text(differs, "yellow"))
    delegation = None
    if args.delegate or args.dump_passes or args.node_data:
        options = device_options(args)
        with progress("preparing", None) as bar:
            interpreter = Interpreter(model, delegates=[CLDelegate(**options, progress=bar.building)])
            interpreter.allocate_tensors()
        delegation = DelegationReport.of(interpreter)
        data["delegation"] = report_data(delegation)
        if args.node_data:
            put_text(args.node_data, to_json(places(model, delegation)))
    if args.nodes:
        nodes = node_lines(model)
        data["nodes"] = [asdict(node) for node in nodes]
        view.append(titled("nodes", _nodes(nodes, () if delegation is None else delegation.nodes)))
    if args.tensors:
        tensors = stored_tensors(model)
        data["stored_tensors"] = [asdict(tensor) for tensor in tensors]
        view.append(titled("tensors", tensors_view(tensors)))
    if delegation is not None:
        view.append(delegation)
    return Output(data, view)


def _nodes(nodes: Sequence[NodeLine], rows: Sequence[NodeRow] = ()) -> Table:
    """Return a table of nodes, including where they run if ``rows`` are given."""
    by_place = {(row.subgraph, row.node): row for row in rows}
    view = table("subgraph", "node", "operator", "tensors and options", "multiply-adds", *(("where",) if rows else ()))
    for node in nodes:
        row = by_place.get((node.subgraph, node.node))
        tensors = [*(f"<- {name}" for name in node.inputs), *(f"-> {name}" for name in node.outputs)]
        view.add_row(
            str(node.subgraph),
            str(node.node),
            f"{node.op} v{node.version}",
            lines([*tensors, *([node.options.replace("\n", " ")] if node.options else [])]),
            "" if node.multiply_adds is None else f"{node.multiply_adds:,}",
            *(() if row is None else (placed(row.claimed, row.reason),)),
        )
    return view

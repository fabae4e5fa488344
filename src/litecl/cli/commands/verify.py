"""``litecl verify``: checks a device or another runtime against the reference."""

import argparse
import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, count, folder, numbers_argument, numbers_view, positive, progress
from litecl.cli.outputs import OutputFile
from litecl.cli.places import full_name
from litecl.cli.tables import table
from litecl.delegate.native.processors import processors
from litecl.interpreter.errors import DeviceNotFound, LiteclError, ModelFileNotFound
from litecl.perf.environment import header, machine
from litecl.report import verified
from litecl.verify import catalogue, waivers
from litecl.verify.check import Check
from litecl.verify.document import Table as Shown
from litecl.verify.document import sentence, tables
from litecl.verify.record import KIND, DeviceResult, Result
from litecl.verify.supervise import Plan, devices_of, verify_device
from litecl.where.table import Table
from litecl.where.table import read as read_table
from litecl.where.table import write as write_table

HELP = "check the results of a device, or of another runtime, against the reference, operator by operator"
EXAMPLES = """\
litecl verify --quick
litecl verify --device all --jobs 2 -o verify.html
litecl verify --ops CONV_2D,SOFTMAX --timed
litecl verify --waivers known.txt -o junit.xml
litecl verify --list
litecl verify --runtime litert --runtime litert-reference -o runtimes.html --cases failures
litecl verify --command 'python run_model.py'
litecl verify --runtime tflite_micro --numbers tflm    # its bits, exactly
litecl verify --runtime tflite_micro --runtime openvino --table table.json --models models/
"""

_GRAPHS = (200, 40)  # in a full and in a quick run
_MOST_JOBS = 4  # each process keeps its checks' programs in memory
_OF_CHECKS = ("device", "programs", "ops", "quick", "replay", "list", "waivers", "output", "cases", "graphs", "numbers")
_SHOWN = "Failures"  # title prefix and columns of the tables to show on a terminal
_COLUMNS = ("check", "types", "what", "kernels")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="DEVICE",
        help="an index or part of a name from `litecl devices`, or all; may be repeated (default: litecl's default)",
    )
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        type=full_name,
        metavar="NAME",
        help="check another runtime instead of a device: litert, litert-reference (its reference kernels), "
        "litecl, tflite_micro (or tflm), openvino, onnxruntime (by tf2onnx), tflite_runtime, or a module with a class "
        "Interpreter like tf.lite's; with --table also vela (for Ethos-U); may be repeated",
    )
    parser.add_argument(
        "--command",
        dest="programs",
        action="append",
        default=[],
        metavar="COMMAND",
        help="check a program that takes MODEL.tflite INPUTS.npz OUTPUTS.npz; may be repeated",
    )
    parser.add_argument(
        "--graphs", type=count, metavar="N", help="number of random graphs for a runtime (default: 200, 40 if quick)"
    )
    parser.add_argument("--seed", type=count, default=0, metavar="N", help="seed of the random graphs (default: 0)")
    parser.add_argument(
        "--cases",
        type=folder,
        metavar="DIR",
        help="write the smallest model of every failure of a runtime to this folder",
    )
    parser.add_argument(
        "--table",
        type=OutputFile(".json"),
        metavar="FILE",
        help="with --runtime, write what it does with each kind of node to this table, for `litecl where --table`; "
        "other runtimes in the table stay",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        type=Path,
        default=[],
        metavar="MODEL|FOLDER",
        help="with --table, also include the nodes of these models, named as given here",
    )
    numbers_argument(parser)
    parser.add_argument("--ops", metavar="OP,OP,...", default="", help="run only the checks of these operators")
    parser.add_argument("--quick", action="store_true", help="run some checks of each operator, in under two minutes")
    parser.add_argument("--replay", metavar="CHECK", help="run one check, by its name")
    parser.add_argument("--list", action="store_true", help="list the checks without running them")
    parser.add_argument(
        "--waivers", type=Path, metavar="FILE", help="a file of known failures, one per line: PATTERN: REASON"
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=OutputFile(*verified.FORMATS),
        metavar="FILE",
        help=f"write the result to this file ({', '.join(verified.FORMATS)}; .xml is JUnit's); may be repeated",
    )
    parser.add_argument("--brief", action="store_true", help="write JSON with one row for checks with the same outcome")
    parser.add_argument(
        "--timeout", type=positive, default=60, metavar="S", help="time limit of a check in seconds (default: 60)"
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=min(_MOST_JOBS, processors()),
        metavar="N",
        help="processes to run at a time (default: cores, at most 4)",
    )
    parser.add_argument("--timed", action="store_true", help="also report checks that are slower than on the CPU")
    parser.add_argument("--keep-cache", action="store_true", help="use cached programs (default: build all anew)")


def run(args: argparse.Namespace) -> Output:
    """Verify devices or runtimes. The exit code is 1 for any failure that no waiver covers."""
    if args.table is not None or args.models:
        return _table(args)
    checks = _checks(args)
    if args.list:
        names = [check.name for check in checks]
        return Output({"checks": names}, [Text("\n".join(names))])
    known = waivers.load(args.waivers) if args.waivers else ()
    head = header(KIND)
    plan = Plan(args.jobs, args.timeout, args.timed, args.keep_cache, args.numbers)
    results, problem = _runtimes(args, checks, plan) if _of_runtimes(args) else _devices(args, checks, plan)
    results = [replace(device, rows=waivers.waived(device.rows, known)) for device in results]
    notes = waivers.unused([row for device in results for row in device.rows], known) if results else ()
    date = "" if _of_runtimes(args) else head["date"]  # no date, for reproducible pages
    result = Result(machine(), tuple(results), head["command"], date, (problem,) if problem else ())
    for path in args.output:
        verified.write(result, path, brief=args.brief)
    view = [*numbers_view(args.numbers), *(part for device in results for part in _summary(device))]
    view += [_shown(part) for part in tables(result) if part.title.startswith(_SHOWN)]
    view += [Text(note) for note in notes]
    view.append(Text(sentence(result)))
    return Output(result.to_dict(), view, int(result.failed), lambda: verified.to_html(result))


def _table(args: argparse.Namespace) -> Output:
    """Write a table of what runtimes do with each kind of node."""
    from litecl.where import making, specimens

    if args.table is None or not args.runtime:
        raise LiteclError("--table and --models: expected --table FILE and --runtime NAME, as in the examples")
    given = vars(args) | {"numbers": args.numbers != "reference"}
    if ignored := [f"--{name}" for name in _OF_CHECKS if given[name]]:
        raise LiteclError(f"--table: {', '.join(ignored)}: no effect on a table, which has all cases")
    written = read_table(args.table) if args.table.exists() else Table()
    skipped: list[str] = []
    with TemporaryDirectory(prefix="litecl-verify-") as folder:
        names = [*specimens.of_cases(), *making.from_models(_files(args.models), Path(folder), skipped)]
        with progress("verifying", len(names) * len(args.runtime)) as tick:
            for name in args.runtime:
                runtime, records = making.records(name, names, args.jobs, args.timeout, tick)
                written = written.with_runtime(runtime, records)
                write_table(written, args.table)  # after each, as one takes minutes
    view = table("runtime", "version", "cases and nodes", "kinds")
    for r in written.runtimes.values():
        view.add_row(r.name, r.version, str(r.specimens), str(sum(r.name in row for row in written.kinds.values())))
    data = {"table": str(args.table), "runtimes": [asdict(r) for r in written.runtimes.values()], "skipped": skipped}
    return Output(data, [view, *map(Text, skipped)])


def _files(paths: Sequence[Path]) -> list[Path]:
    """Return models, and all those in folders. Raises ModelFileNotFound."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ModelFileNotFound(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        files += sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
    return files


def _of_runtimes(args: argparse.Namespace) -> bool:
    return bool(args.runtime or args.programs)


def _checks(args: argparse.Namespace) -> tuple[Check, ...]:
    ops = [op for op in args.ops.split(",") if op]
    if not _of_runtimes(args):
        return catalogue.selected(ops, quick=args.quick, only=args.replay)
    from litecl.conformance import catalogue as conformance  # half a second

    graphs = _GRAPHS[args.quick] if args.graphs is None else args.graphs
    return conformance.selected(ops, quick=args.quick, only=args.replay, graphs=graphs, seed=args.seed)


def _devices(args: argparse.Namespace, checks: Sequence[Check], plan: Plan) -> tuple[list[DeviceResult], str]:
    devices, problem = devices_of(args.device, args.timeout)
    if args.device and not devices:
        raise DeviceNotFound(problem.removeprefix("DeviceNotFound: "))
    with progress("verifying", len(checks) * len(devices)) as tick:
        return [verify_device(device, checks, plan, tick) for device in devices], problem


def _runtimes(args: argparse.Namespace, checks: Sequence[Check], plan: Plan) -> tuple[list[DeviceResult], str]:
    from litecl.conformance.kit import Kit

    numbers = {} if args.numbers == "reference" else {"numbers": args.numbers}
    kits = [Kit({"name": name, **numbers}, plan, _folder(args, name)) for name in args.runtime]
    kits += [Kit({"command": line, **numbers}, plan, _folder(args, line)) for line in args.programs]
    for kit in kits:
        kit.described()  # raises for a missing runtime before the others run for minutes
    with progress("verifying", len(checks) * len(kits)) as tick:
        return [kit.verify(checks, tick) for kit in kits], ""


def _folder(args: argparse.Namespace, runtime: str) -> Path | None:
    from litecl.conformance.worker import folder_of

    return None if args.cases is None else Path(args.cases) / folder_of(runtime)


def _summary(device: DeviceResult) -> list[RenderableType]:
    """Return a title and a table of statuses with counts."""
    view = table("status", "checks", "operators")
    for status, number in device.counts.items():
        ops = Counter(row.op for row in device.rows if row.status == status)
        view.add_row(status, str(number), str(len(ops)))
    took = f", {device.seconds:.0f} s" if device.seconds else ""
    return [Text(f"{device.name}{took}"), view]


def _shown(part: Shown) -> RenderableType:
    view = table(*_COLUMNS)
    view.title, view.title_justify = part.title, "left"
    indices = [part.columns.index(name) for name in _COLUMNS]
    for cells in part.rows:
        view.add_row(*(cells[i] for i in indices))
    return view

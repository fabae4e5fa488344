"""``litecl compile --for``: makes packs for machines without a compiler."""

import argparse
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from litecl.cli.command import Bar, Output, device_options, numbers_view, progress, require_device, resize
from litecl.cli.entry import Entry
from litecl.cli.tables import report_data, size, table
from litecl.delegate import CLDelegate, DelegationReport, disk
from litecl.delegate.native import pack
from litecl.delegate.native.kinds import HOST, KINDS, Machine, machine
from litecl.delegate.native.packing import Target, target
from litecl.delegate.report_table import PlainConsole
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.reader import content_of

_THREADS = (1, 2, 4, 8)


class Machines(argparse.Action):
    """Collects machine names; ``help`` lists their kinds and exits."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        """Add a machine."""
        if values == "help":
            _list_kinds()
            parser.exit()
        try:
            chosen = machine(str(values))
        except DelegateError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), chosen])


def _list_kinds() -> None:
    kinds = table("kind", "processor unless one is named", "others, such as")
    for kind in KINDS.values():
        kinds.add_row(kind.name, kind.base, ", ".join(kind.examples))
    PlainConsole().print(kinds, Text(f"KIND:PROCESSOR takes any name that clang knows; {HOST} is this machine."))


@dataclass(frozen=True)
class _Work:
    """A model compiled for a machine. report, libraries, size_bytes, s: the outcome."""

    model: Path
    machine: Machine
    report: DelegationReport
    libraries: int
    size_bytes: int
    s: float


def packed(args: argparse.Namespace) -> Output:
    """Make a pack of all models for all machines."""
    folder = disk.folder(args.cache_dir)
    targets = [target(wanted, folder) for wanted in args.machines]
    threads = sorted({1, *(args.num_threads or _THREADS)})
    with progress("compiling", None) as bar:
        works = [_work(args, model, each, threads, bar) for each in targets for model in args.models]
        machines = [each.packed() for each in targets]
    models = {hashlib.sha256(content_of(model)).hexdigest(): Path(model).name for model in args.models}
    libraries = {name: content for each in targets for name, content in each.libraries.items()}
    size_bytes = pack.write(args.output, models, threads, machines, libraries, args.dynamic_range)
    return _output(args, works, threads, size_bytes)


def _work(args: argparse.Namespace, model: Path, target: Target, threads: Sequence[int], bar: Bar) -> _Work:
    start_s, before, reports = time.perf_counter(), {*target.libraries}, list[DelegationReport]()
    for count in threads:
        bar.now(f"{Path(model).name} for {target.machine.name}, threads: {count}")
        options = device_options(args) | {
            "device": target.device(count),
            "num_threads": count,
            "progress": bar.building,
            "strict": True,  # an incomplete pack would only fail on the target
        }
        interpreter = Interpreter(model, delegates=[CLDelegate(**options)], numbers=args.numbers)
        for key in interpreter.get_signature_list() or [None]:
            resize(Entry(interpreter, key), args.shape)
        interpreter.allocate_tensors()
        reports.append(DelegationReport.of(interpreter))
        require_device(args, reports[-1])
    new = [content for name, content in target.libraries.items() if name not in before]
    took_s = time.perf_counter() - start_s
    return _Work(model, target.machine, reports[-1], len(new), sum(map(len, new)), took_s)


def _output(args: argparse.Namespace, works: Sequence[_Work], threads: Sequence[int], size_bytes: int) -> Output:
    path, view = args.output, table("machine", "model", "nodes", "libraries", "s")
    for work in works:
        nodes = f"{work.report.claimed} of {len(work.report.nodes)}"
        libraries = f"{work.libraries} ({size(work.size_bytes)})"
        view.add_row(work.machine.name, Path(work.model).name, nodes, libraries, f"{work.s:.1f}")
    line = f"{path}: {size(size_bytes)}, for threads {', '.join(map(str, threads))}"
    warnings = [
        f"WARNING: {work.machine.name}: {work.model}: {warning}" for work in works for warning in work.report.warnings
    ]
    data = {
        "pack": str(path),
        "size_bytes": size_bytes,
        "threads": [*threads],
        "numbers": args.numbers,
        "models": [
            {
                "model": str(work.model),
                "machine": work.machine.name,
                "libraries": work.libraries,
                "size_bytes": work.size_bytes,
                "s": work.s,
                "delegation": report_data(work.report),
            }
            for work in works
        ],
    }
    return Output(data, [*numbers_view(args.numbers), view, *(Text(text) for text in (line, *warnings))])

"""``litecl run --inputs``: runs a model on batches of inputs, and resumes after an interruption."""

import argparse
import glob
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.cli.command import Output, device_options, media_of, numbers_view, positive, progress, read_view
from litecl.cli.entry import Entry
from litecl.cli.tables import table
from litecl.delegate.naming import counted
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.jobs import engines
from litecl.jobs.given import how_read
from litecl.jobs.job import Done, Job

_SHOWN = 10  # most inputs without a result to list
_DEFAULTS: dict[str, Any] = {"rows": False, "batch": 1, "part": 1024, "devices": None, "engine": "local", "workers": 1}


def many_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    group = parser.add_argument_group(
        "batches", "Results go to the folder of -o, in parts. Run the command again to resume after an interruption."
    )
    group.add_argument(
        "--inputs",
        nargs="+",
        metavar="FILE",
        help="files, 'patterns' or folders; each file is an input, as for --input, or an .npz file with all of them",
    )
    group.add_argument("--rows", action="store_true", help="each row of one .npy file is an input")
    group.add_argument("--batch", type=positive, metavar="N", help="batch size (default: 1)")
    group.add_argument("--part", type=positive, metavar="N", help="inputs per part (default: 1024)")
    group.add_argument("--devices", help="alternate between devices: all, or names or indices with commas")
    group.add_argument("--engine", choices=[*engines.ENGINES], help="engine that distributes parts (default: local)")
    group.add_argument("--workers", type=positive, metavar="N", help="worker processes of the engine (default: 1)")
    parser.set_defaults(**_DEFAULTS)


def require_inputs(args: argparse.Namespace) -> None:
    """Raise ModelError for flags that have no effect without ``--inputs``."""
    if given := [f"--{name}" for name, default in _DEFAULTS.items() if getattr(args, name) != default]:
        raise ModelError(f"{', '.join(given)}: expected --inputs with it")


def many(args: argparse.Namespace) -> Output:
    """Run the remaining parts. Raises ModelError for flags that have no effect."""
    if args.input or args.shape:
        raise ModelError("--inputs: --input and --shape have no effect with it")
    if args.workers != 1 and args.engine == "local":
        raise ModelError("--workers: expected --engine ray or --engine dask with it")
    engines.require(args.engine)
    job = _job(args)
    start_s, done = time.perf_counter(), []
    with job.begun():
        missing = sorted({*job.missing(), *job.outdated()})
        left = sum(len(job.items(number)) for number in missing)
        workers = min(args.workers, len(missing))
        with progress(_running(args.engine, workers), left) as bar:
            for part in engines.ENGINES[args.engine](job, missing, workers) if missing else ():
                done.append(part)
                bar.bar.advance(bar.task, part.inputs)
    data = {
        "folder": job.folder,
        "inputs": job.count,
        "parts": job.parts,
        "run_before": job.count - left,
        "seconds": time.perf_counter() - start_s,
        "workers": _workers(done),
        "read": _read(args, job),
        "numbers": args.numbers,
        "missing": job.missing(),
        "unreadable": job.unreadable(),
    }
    return Output(data, _view(data, left), exit_code=1 if data["missing"] or data["unreadable"] else 0)


def _running(engine: str, workers: int) -> str:
    return "running" if engine == "local" else f"running on {counted(workers, 'worker')} of {engine}"


def _job(args: argparse.Namespace) -> Job:
    if args.output is None:
        raise ModelError("--inputs: expected -o DIR with it, for the results")
    files = [file for pattern in args.inputs for file in _files(pattern)]
    if args.rows and len(files) != 1:
        raise ModelError(f"--rows: expected one .npy file, got {len(files)}")
    for name in {*files}.intersection(args.inputs):  # a pattern without a match and an empty folder, too
        if not Path(name).exists():
            raise ModelError(f"--inputs: {name}: No such file")
        if Path(name).is_dir():
            raise ModelError(f"--inputs: {name}: expected files in this folder, found none")
    devices = args.devices if args.devices in (None, "all") else tuple(map(_device, args.devices.split(",")))
    options = {name: value for name, value in device_options(args).items() if value is not None and name != "device"}
    options |= {"device": args.device if devices is None else devices, "cpu": args.cpu, "signature": args.signature}
    options |= {"require_device": args.require_device, "numbers": args.numbers}
    return Job(
        str(args.model.absolute()),
        tuple(str(Path(file).absolute()) for file in files),
        str(args.output.absolute()),
        rows=args.rows,
        batch=args.batch,
        part=args.part,
        media=media_of(args),
        options={**options, "buffers": 2},
    )


def _read(args: argparse.Namespace, job: Job) -> list[dict[str, Any]]:
    """Describe how the first file becomes input values, if it is an image or a sound."""
    entry = Entry(Interpreter(job.model), args.signature)
    with suppress(ModelError, OSError):  # the job has already reported it
        if not job.rows:
            return how_read(job.files[:1], entry.get_input_details(), media_of(args, entry))
    return []


def _files(pattern: str) -> list[str]:
    """Expand a pattern or a folder; without a match, return the name itself."""
    folder = Path(pattern).is_dir()
    return sorted(glob.glob(f"{glob.escape(pattern)}/*" if folder else pattern)) or [pattern]  # noqa: PTH207


def _device(word: str) -> str | int:
    return int(word) if word.isdecimal() else word


def _workers(done: list[Done]) -> list[dict[str, Any]]:
    """Summarize each process's work."""
    return [
        {
            "process": worker,
            "devices": next(part.devices for part in done if part.worker == worker),
            "parts": sum(part.worker == worker for part in done),
            "inputs": sum(part.inputs for part in done if part.worker == worker),
            "seconds": sum(part.seconds for part in done if part.worker == worker),
        }
        for worker in sorted({part.worker for part in done})
    ]


def _view(data: dict[str, Any], left: int) -> list[RenderableType]:
    rate = left / data["seconds"] if data["seconds"] else 0.0
    parts = f"{counted(data['inputs'], 'input')} in {counted(data['parts'], 'part')}"
    line = f"{data['folder']}: {parts}, {data['run_before']} of them resumed; "
    line += f"{left} in {data['seconds']:.1f} s, {rate:.1f} inputs/s"
    workers = table("process", "device", "parts", "inputs", "s")
    for row in data["workers"]:
        workers.add_row(
            str(row["process"]), row["devices"], str(row["parts"]), str(row["inputs"]), f"{row['seconds']:.1f}"
        )
    faults = [f"{len(data['missing'])} parts are missing"] if data["missing"] else []
    if unreadable := [*data["unreadable"].items()]:
        faults += [f"{len(unreadable)} inputs have no result:", *map(": ".join, unreadable[:_SHOWN])]
        faults += [f"... and those that the part-*.json in {data['folder']} name"] if len(unreadable) > _SHOWN else []
    return [
        Text(line),
        *read_view(data["read"]),
        *numbers_view(data["numbers"]),
        *([workers] if data["workers"] else []),
        *(Text(fault, "bold red") for fault in faults),
    ]

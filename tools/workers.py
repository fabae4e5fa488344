"""Throughput of many inputs by the workers of an engine, in litecl and in LiteRT; and what a killed worker costs.

``python -m tools.workers MODEL --engine ray --workers 1 2 4`` measures both in turns, each worker with
one thread. ``--kill`` kills a worker halfway instead, and checks that every input has its result, once.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from litecl.jobs import engines
from litecl.jobs.job import Job
from litecl.perf.feeds import random_inputs
from litecl.predictor import Predictor
from support.killed_worker import killed
from tools.litert_workers import LiteRTParts, litert_part


def measure(job_: Job, engine: str, workers: int, runtime: str) -> float:
    """Return inputs a second, between the first part of the last worker to begin and the last part of all."""
    before = {name: vars(engines)[name] for name in ("RunParts", "run_part")}
    try:
        if runtime == "litert":
            vars(engines).update(RunParts=LiteRTParts, run_part=litert_part)
        told = [(time.perf_counter(), done) for done in engines.ENGINES[engine](job_, job_.missing(), workers)]
    finally:
        vars(engines).update(before)
    firsts: dict[int, int] = {}
    for place, (_, done) in enumerate(told):
        firsts.setdefault(done.worker, place)
    begin = max(firsts.values())
    return sum(done.inputs for _, done in told[begin + 1 :]) / (told[-1][0] - told[begin][0])


def _rows(model: str, count: int, folder: Path) -> str:
    """Write random inputs, a row each; a thousand of them again and again."""
    with Predictor(model, cpu=True) as predictor:
        ((_, (shape, dtype)),) = predictor.inputs.items()
    some = random_inputs([{"name": "x", "shape": (1000, *shape[1:]), "dtype": dtype}], 0)["x"]
    path = folder / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", dtype, (count, *shape[1:]))
    for start in range(0, count, 1000):
        rows[start : start + 1000] = some[: count - start]
    return str(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line of JSON for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--engine", choices=[*engines.ENGINES], default="ray")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--runtimes", nargs="+", choices=("litecl", "litert"), default=["litecl", "litert"])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--part", type=int, default=256)
    parser.add_argument("--kill", action="store_true")
    args = parser.parse_args(arguments)
    model = str(Path(args.model).absolute())
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(model, args.count, Path(folder))
        base = Job(model, (rows,), folder, rows=True, batch=args.batch, part=args.part, options={"num_threads": 1})
        for workers in args.workers:
            for runtime in ["litecl"] if args.kill else args.runtimes:
                job_ = replace(base, folder=f"{folder}/{workers}{runtime}")
                job_.begin()
                found = {"engine": args.engine, "workers": workers}
                if args.kill:
                    found |= killed(job_, args.engine, workers)
                else:
                    found |= {"runtime": runtime, "inputs/s": round(measure(job_, args.engine, workers, runtime), 1)}
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

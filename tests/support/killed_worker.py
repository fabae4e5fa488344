"""A job on an engine that loses a worker."""

import os
import signal
from typing import Any

import numpy as np

from litecl.jobs import engines
from litecl.jobs.job import ITEM, Done, Job
from litecl.predictor import Predictor


def killed(job_: Job, engine: str, workers: int) -> dict[str, Any]:
    """Kill a worker halfway; return the outcome of the inputs."""
    reports: list[Done] = []
    for done in engines.ENGINES[engine](job_, job_.missing(), workers):
        reports.append(done)
        if len(reports) == job_.parts // 2:
            os.kill(done.worker, signal.SIGKILL)
    items = np.concatenate([np.load(job_.path(number))[ITEM] for number in range(job_.parts)])
    picked = np.random.default_rng(1).integers(0, job_.count, 100)
    with Predictor(job_.model, cpu=True) as reference:
        (name,), output = reference.inputs, reference.outputs[0]
        expected = reference({name: np.ascontiguousarray(np.load(job_.files[0], mmap_mode="r")[picked])})[output]
    got = np.stack([np.load(job_.path(i // job_.part))[output][i % job_.part] for i in picked])
    return {
        "parts": job_.parts,
        "told": len(reports),
        "inputs": len(items),
        "each_once": bool(np.array_equal(items, np.arange(job_.count))),
        "processes": len({done.worker for done in reports}),
        "difference": float(np.abs(got - expected).max() / np.abs(expected).max()),
    }

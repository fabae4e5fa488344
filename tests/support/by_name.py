"""Cases from the tables by name, planned for any device and run on one."""

import importlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.cl_op import Launch, Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.ops import CL_OPS
from litecl.delegate.plan.planning import plan
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.run.shapes import propagate
from litecl.perf.feeds import run_on
from support import compare, oracle

Fed = tuple[bytes, list[Array]]


def case_of(table: str, op: str, name: str) -> Fed:
    """Return a case from the tables as a model, with its inputs."""
    found: Case = next(c for c in importlib.import_module(f"cases.{table}").CASES if (c.op.name, c.name) == (op, name))
    return write(found.model()), list(found.feeds)


def launches(fed: Fed, target: Target) -> list[Launch]:
    """Return the launches planned for a device."""
    content, feeds = fed
    model = read(content)
    source = explicit(model, propagate(model, {0: [feed.shape for feed in feeds]}))
    regions = partition(0, source, CLOptions(), preserve=False).regions
    return [work.launch for region in regions for work in plan(region, source, target, 64, CL_OPS).works]


def agrees(fed: Fed, delegates: Sequence[CLDelegate]) -> None:
    """Run a model on a device, and compare with LiteRT's reference kernels."""
    content, feeds = fed
    alike = [replace(delegate, dynamic_range="reference") for delegate in delegates]
    interpreter = Interpreter(model_content=content, delegates=alike)
    run_on(interpreter, feeds)
    assert interpreter.delegation_report().counters.kernel_launches
    for detail, expected in zip(interpreter.get_output_details(), oracle.run(content, feeds), strict=True):
        got = np.asarray(interpreter.get_tensor(detail["index"]))
        compare.assert_close(got, expected, compare.DEVICE.get(expected.dtype.name, 0.0))

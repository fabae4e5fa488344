"""Measures attention on the device, in LiteRT, and on the device as three operators.

``python -m tools.attention [THREADS]`` prints a table: best times of interleaved runs, in microseconds.
Every row is one layer's attention, with a causal mask where there are as many queries as keys, else with a mask that
hides the second half of a cache.
"""

import sys
import time
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.delegate import CLDelegate
from litecl.delegate.plan import pipeline
from litecl.delegate.plan.passes.attention import attention
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.perf.models.build import Graph, model, randn
from litecl.perf.timing import PAUSE_S

_RUNS = 12


@dataclass(frozen=True)
class Subject:
    """Attention of ``heads`` over ``keys`` keys of ``size``; shared: heads that have the same keys and values."""

    name: str
    heads: int
    queries: int
    keys: int
    size: int
    shared: int = 1


SUBJECTS = (
    Subject("decoder, cache of 256", 8, 1, 256, 64),
    Subject("decoder, cache of 2,048", 8, 1, 2048, 64),
    Subject("decoder, 4 heads share keys", 8, 1, 2048, 128, 4),
    Subject("BERT, 128 words", 12, 128, 128, 64),
    Subject("BERT, 512 words", 12, 512, 512, 64),
    Subject("image of 14 x 14", 6, 196, 196, 32),
)


def content(s: Subject) -> bytes:
    """Return the file of a subject."""
    g, groups = Graph(), s.heads // s.shared
    q, k, v = (g.input((1, groups, n, s.size)) for n in (s.shared * s.queries, s.keys, s.keys))
    hidden = np.arange(s.keys) > (np.arange(s.queries)[:, None] if s.queries == s.keys else s.keys // 2)
    mask = np.where(np.tile(np.atleast_2d(hidden), (s.shared, 1)), -np.inf, 0).astype(np.float32)
    scores = g.op(BATCH_MATMUL, [q, k], BatchMatMulOptions(adj_y=True))
    scores = g.op(MUL, [scores, g.const(np.float32(s.size**-0.5))], MulOptions())
    scores = g.op(ADD, [scores, g.const(mask)], AddOptions())
    weights = g.op(SOFTMAX, [scores], SoftmaxOptions(beta=1.0))
    return write(model(g.build(g.op(BATCH_MATMUL, [weights, v], BatchMatMulOptions()))))


def measure(s: Subject, threads: int) -> tuple[list[float], float]:
    """Return the best times of the kernel, LiteRT, and three operators, and how far the first two are apart."""
    file, rng = content(s), np.random.default_rng(0)
    fused = Interpreter(file, delegates=[CLDelegate(num_threads=threads)])
    fused.allocate_tensors()
    apart = Interpreter(file, delegates=[CLDelegate(num_threads=threads)])
    with mock.patch.object(pipeline, "PASSES", tuple(p for p in pipeline.PASSES if p.__name__ != attention.__name__)):
        apart.allocate_tensors()
    runtimes: list[Any] = [fused, LiteRT(model_content=file, num_threads=threads), apart]
    runtimes[1].allocate_tensors()
    feeds = [randn(rng, *detail["shape"]) for detail in fused.get_input_details()]
    times = [[_time_us(runtime, feeds) for runtime in runtimes] for _ in range(_RUNS)]
    results = [runtime.get_tensor(runtime.get_output_details()[0]["index"]) for runtime in runtimes]
    return [min(column) for column in zip(*times, strict=True)], float(np.abs(results[0] - results[1]).max())


def _time_us(runtime: Any, feeds: list[Array]) -> float:
    for detail, feed in zip(runtime.get_input_details(), feeds, strict=True):
        runtime.set_tensor(detail["index"], feed)
    time.sleep(PAUSE_S)
    runtime.invoke()  # wakes up
    start_s = time.perf_counter()
    runtime.invoke()
    return (time.perf_counter() - start_s) * 1e6


def main(arguments: list[str]) -> None:
    """Print the table."""
    threads = int(arguments[0]) if arguments else 1
    print(f"{'':30}{'litecl':>10}{'LiteRT':>10}{'ratio':>8}{'3 operators':>13}{'apart by':>10}")
    for subject in SUBJECTS:
        (ours, theirs, three), apart = measure(subject, threads)
        print(f"{subject.name:30}{ours:10.1f}{theirs:10.1f}{theirs / ours:8.2f}{three:13.1f}{apart:10.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])

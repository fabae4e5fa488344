"""A region as text after each pass, made without a device."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.ops import CL_OPS
from litecl.delegate.plan.dump import Dump
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.pipeline import PASSES
from litecl.delegate.plan.planning import plan
from litecl.delegate.plan.text import describe
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.unary import EXP, RELU6
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import Padding
from support.build import Graph
from support.loop_models import FLOAT, INT, State, below, next_, while_model
from support.regions import after

TARGET = CpuTarget(vector_width=8, compute_units=1)
STATE: State = [((), INT), ((3, 32), FLOAT)]


def whole() -> tuple[Graph, int]:
    """A graph in which every pass finds something."""
    g = Graph()
    x, row = g.input((1, 2, 2, 8)), g.input((1, 1, 2, 16))
    around = g.const(np.array([(0, 0), (1, 1), (1, 0), (0, 0)], np.int32))
    image = g.op(PAD, [x, around], NoOptions())
    weights = g.const(np.ones((16, 3, 2, 8), np.float32))
    product = g.op(CONV_2D, [image, weights, g.const(np.ones(16, np.float32))], Conv2DOptions(Padding.VALID, 1, 1))
    total = g.op(ADD, [g.input((1, 2, 2, 16)), product], AddOptions())
    a = g.op(RELU6, [total], NoOptions())
    b = g.op(MUL, [g.op(EXP, [a], NoOptions()), g.const(np.float32(0.5))], MulOptions())
    at = g.const(np.zeros(4, np.int32))
    first = g.op(DYNAMIC_UPDATE_SLICE, [a, row, at], NoOptions())
    second = g.op(DYNAMIC_UPDATE_SLICE, [first, row, at], NoOptions())
    return g, g.op(CONCATENATION, [b, second], ConcatenationOptions(-1))


def test_a_graph() -> None:
    assert describe(after(PASSES, *whole())) == (
        """\
subgraph 0(%0:float32[1,2,2,8], %1:float32[1,1,2,16], %7:float32[1,2,2,16])
  %9:float32[1,2,2,16] = CONV_2D(%0, constant[16,3,2,8], constant[16]), pads 1 1 1 0, plus %7, CLAMP 0 to 6, #1 #0 #2 #3
  %12:float32[1,2,2,16] at byte 0 of %16 in rows 32 apart = chain(%9), EXP, MUL 0.5, #4 #5
  %14:float32[1,2,2,16] = DYNAMIC_UPDATE_SLICE(%9, %1, [0, 0, 0, 0]), #6
  %15:float32[1,2,2,16] = DYNAMIC_UPDATE_SLICE(%14, %1, [0, 0, 0, 0]), in place, #7
  %16:float32[1,2,2,32] = CONCATENATION(%12, %15), #8
  return %16
"""
    )


def loop() -> Model:
    """A loop with something to fuse in its body."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), g.op(EXP, [g.op(EXP, [x[1]], NoOptions())], NoOptions())]

    return while_model(STATE, below(5), body)


def planned(model: Model, observe: Dump) -> None:
    graph = model.subgraphs[0]
    source = explicit(model, propagate(model, {0: [graph.tensors[t].static_shape for t in graph.inputs]}))
    (region,) = partition(0, source, CLOptions()).regions
    plan(region, source, TARGET, 64, CL_OPS, observe)


def test_files(tmp_path: Path) -> None:
    """A file for every pass that changes something, of every subgraph that runs, in the order of their planning."""
    told: list[tuple[str, int]] = []

    class Told(Dump):
        def __call__(self, name: str, graph: RegionGraph) -> None:
            told.append((name, graph.subgraph))
            super().__call__(name, graph)

    planned(loop(), Told(tmp_path / "region0"))
    files = sorted((tmp_path / "region0").iterdir())
    assert [file.name for file in files] == [
        "000_subgraph0_claimed.txt",
        "001_subgraph1_claimed.txt",
        "002_subgraph2_claimed.txt",
        "003_subgraph2_chains.txt",
    ]
    assert "WHILE(%0, %1)" in files[0].read_text()
    assert "chain(%1), EXP, EXP, #1 #2" in files[-1].read_text()
    passes = ["claimed", *(run.__name__ for run in PASSES)]
    assert told == [(name, subgraph) for subgraph in (0, 1, 2) for name in passes]

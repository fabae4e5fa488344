"""Whose memory caches lie in: what a step writes is not another's, whatever the model makes of its outputs."""

from pathlib import Path

import numpy as np
import pytest

from litecl import Generator
from litecl.delegate import CLDelegate
from litecl.generate.runners import Caches, InterpreterRunner
from litecl.generate.signatures import Entry, Role, Step
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model, Signature
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from support.build import Graph, model
from support.causal_lm import CausalLM

_F = np.dtype(np.float32)
PLACES = pytest.mark.parametrize("cpu", [True, False], ids=["numpy", "delegate"])


def caches(run: InterpreterRunner, *values: float) -> Caches:
    return run.caches({name: np.full((1, 4), value, np.float32) for name, value in zip("ab", values, strict=True)})


def step(key: str = "step") -> Step:
    inputs = (Entry("x", Role.TOKENS, (1, 4), _F), *(Entry(name, Role.CACHE, (1, 4), _F) for name in "ab"))
    return Step(key, 1, inputs, (*inputs[1:], Entry("y", None, (1, 4), _F)), "y")


def made(*, passed_on: bool, twice: bool = False, returned: bool = True, same: bool = False) -> Model:
    """y = x + a, a' = a or a + x, b' = b * x or the same as a'."""
    graphs = []
    for key in ("step", "other") if twice else ("step",):
        g = Graph(key)
        x, a, b = (g.input((1, 4)) for _ in range(3))
        y = g.op(ADD, [x, a], AddOptions())
        next_a = a if passed_on else g.op(ADD, [a, x], AddOptions())
        next_b = next_a if passed_on or same else g.op(MUL, [b, x], MulOptions())
        signature = Signature(key, {"x": x, "a": a, "b": b}, {"y": y, "a": next_a, "b": next_b}, len(graphs))
        graphs.append((g.build(y, next_a, next_b) if returned else g.build(y), signature))
    return model(*(graph for graph, _ in graphs), signatures=[signature for _, signature in graphs])


def runner(content: Model, cpu: bool) -> InterpreterRunner:
    return InterpreterRunner(Interpreter(content, delegates=[] if cpu else [CLDelegate()]))


@PLACES
@pytest.mark.parametrize(("passed_on", "returned"), [(True, True), (False, True), (True, False)])
def test_caches_are_ones_own(cpu: bool, passed_on: bool, returned: bool) -> None:
    """Also where the model returns its input, or one tensor under two names, or its signature names an input."""
    run = runner(made(passed_on=passed_on, returned=returned), cpu)
    first, second = caches(run, 1, 2), caches(run, 10, 20)
    expected = {id(first): [1.0, 2.0], id(second): [10.0, 20.0]}
    for x, held in ((2.0, first), (3.0, second), (4.0, second), (5.0, first), (6.0, first), (7.0, second)):
        a, b = expected[id(held)]
        results = run.run(step(), {"x": np.full((1, 4), x, np.float32)}, held)
        assert results["y"].tolist() == [[x + a] * 4]
        expected[id(held)] = [a, a] if passed_on else [a + x, b * x]
        for each in (first, second):
            assert [value.tolist() for value in run.values(each).values()] == [[[n] * 4] for n in expected[id(each)]]


@PLACES
def test_two_caches_from_one_tensor(cpu: bool) -> None:
    run = runner(made(passed_on=False, same=True), cpu)
    held = caches(run, 1, 2)
    for x, wanted in ((2.0, 3), (4.0, 7)):
        run.run(step(), {"x": np.full((1, 4), x, np.float32)}, held)
        assert [value[0, 0] for value in run.values(held).values()] == [wanted, wanted]


@PLACES
def test_two_signatures_on_the_same_caches(cpu: bool) -> None:
    run = runner(made(passed_on=False, twice=True), cpu)
    held, others = caches(run, 1, 1), caches(run, 5, 5)
    for key, x in (("step", 2.0), ("other", 3.0), ("step", 4.0)):
        run.run(step(key), {"x": np.full((1, 4), x, np.float32)}, held)
        run.run(step(key), {"x": np.full((1, 4), 1, np.float32)}, others)
    assert [value[0, 0] for value in run.values(held).values()] == [10, 24]
    assert [value[0, 0] for value in run.values(others).values()] == [8, 5]


def test_the_device_takes_over_while_a_text_is_generated(tmp_path: Path) -> None:
    lm = CausalLM()
    generator = Generator(lm.write(tmp_path), warm_up="background", cache_dir=None)
    got = [piece.token for piece in generator.stream([5, 6, 7, 8, 9], max_tokens=50)]
    assert got == lm.greedy([5, 6, 7, 8, 9], 50)

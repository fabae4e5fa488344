"""``litecl.bisect`` names the operator that a runtime computes wrong."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl.bisection import write_case
from litecl.bisection.tolerance import Tolerance, worst
from litecl.cli.parser import main
from litecl.delegate import CLDelegate
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DeviceNotFound, ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.rnn import UNIDIRECTIONAL_SEQUENCE_RNN, SequenceRNNOptions
from litecl.interpreter.ops.unary import LOGISTIC, NEG, SIN, TANH
from litecl.perf.feeds import run_on
from support.bisect_models import doubling, loop, zoo
from support.build import Graph, model, randn
from support.loop_models import BOOL, FLOAT, if_node, subgraph
from support.planted_faults import KERNELS, LOWERINGS, mislowered, planted

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
ON: dict[str, Any] = {"num_threads": 1}


@pytest.fixture(scope="module", autouse=True)
def _shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Share a cache: kernels are cached by content, so a fault compiles only what it changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ON, "cache_dir", tmp_path_factory.mktemp("kernels"))
        yield


def _negated(g: Graph, x: Sequence[int]) -> list[int]:
    return [g.op(NEG, [x[0]], NoOptions())]


def _sine(g: Graph, x: Sequence[int]) -> list[int]:
    return [g.op(SIN, [x[0]], NoOptions())]


def is_shown_by(case: Path, **options: Any) -> bool:
    """Whether a device computes the smallest model wrong, of its files alone."""
    given, expected = (list(np.load(case / name).values()) for name in ("inputs.npz", "expected.npz"))
    model_ = str(case / "case.tflite")
    right = run_on(Interpreter(model_), given)
    assert worst(right, expected, Tolerance(relative=1e-6)) is None
    got = run_on(Interpreter(model_, delegates=[CLDelegate(device="native", strict=True, **ON, **options)]), given)
    return worst(got, right, Tolerance()) is not None


def _sampled(names: Iterable[str]) -> list[Any]:
    """Return names as parameters; a plain run tries every fifth."""
    return [pytest.param(name, marks=pytest.mark.nightly if i % 5 else ()) for i, name in enumerate(names)]


@pytest.mark.parametrize("make", dict.fromkeys(fault.model for fault in KERNELS.values()))
def test_a_right_model(make: Callable[[], bytes]) -> None:
    found = litecl.bisect(make(), "native", **ON)
    assert (found.verdict, found.output, found.fault, found.notes) == ("right", None, None, ())


@pytest.mark.parametrize("name", _sampled(KERNELS))
def test_wrong_kernels(name: str, tmp_path: Path) -> None:
    fault, case = KERNELS[name], tmp_path / "case"
    with planted(tmp_path / "kernels", fault):
        found = litecl.bisect(fault.model(), "native", **ON)
        assert found.verdict == "fault", found
        assert found.fault is not None
        assert found.fault.ops == fault.ops
        write_case(found, case)
        assert is_shown_by(case)
    assert not is_shown_by(case)
    assert len(read((case / "case.tflite").read_bytes()).subgraphs[0].nodes) == len(fault.ops)


@pytest.mark.parametrize("name", _sampled(LOWERINGS))
def test_wrong_lowerings(name: str, tmp_path: Path) -> None:
    module, op, change = LOWERINGS[name]
    wrong, case = [mislowered(module, op, change)], tmp_path / "case"
    found = litecl.bisect(zoo(), "native", **ON, custom_ops=wrong)
    assert found.verdict == "fault", found
    assert found.fault is not None
    assert found.fault.ops == (op,)
    write_case(found, case)
    assert is_shown_by(case, custom_ops=wrong)
    assert not is_shown_by(case)


@pytest.mark.parametrize(
    ("dtype", "off", "allowed"),
    [(np.int8, 1, True), (np.int16, 1, True), (np.uint8, 2, False), (np.int32, 1, False), (np.int64, 1, False)],
)
def test_steps_are_those_of_quantized_integers(dtype: Any, off: int, allowed: bool) -> None:
    """An index that is off by one is wrong."""
    expected = np.array([3, 4], dtype)
    assert (worst([expected + dtype(off)], [expected], Tolerance(steps=1)) is None) == allowed


def test_booleans_are_exact() -> None:
    expected = np.array([True, False])
    assert worst([~expected], [expected], Tolerance(steps=1)) is not None
    assert worst([expected], [expected], Tolerance()) is None


def _before_a_state(after: int) -> bytes:
    """A normalisation before an RNN, which has a state of its own, and some nodes after it that are right."""
    g, rng = Graph(), np.random.default_rng(7)
    x = g.op(L2_NORMALIZATION, [g.input((2, 3, 4))], L2NormOptions())
    weights = [g.const(randn(rng, *shape, scale=0.4)) for shape in ((5, 4), (5, 5), (5,))]
    x = g.op(UNIDIRECTIONAL_SEQUENCE_RNN, [x, *weights, g.variable((2, 5))], SequenceRNNOptions())
    for _ in range(after):
        x = g.op(LOGISTIC, [x], NoOptions())
    return write(model(g.build(x)))


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_an_operator_before_one_with_a_state(after: int, tmp_path: Path) -> None:
    """Which must not hide it: wherever a model is halved, some half has the state."""
    fault = KERNELS["no root"]
    with planted(tmp_path / "kernels", fault):
        found = litecl.bisect(_before_a_state(after), "native", **ON)
    assert found.fault is not None, found.notes
    assert found.fault.ops == fault.ops


def test_an_iteration_of_a_loop(tmp_path: Path) -> None:
    """A sine that is wrong for large angles is wrong from the iteration on whose angles are large."""
    start = {"main_in0": np.full(5, 0.005, np.float32)}
    with planted(tmp_path / "kernels", KERNELS["a large angle"]):
        found = litecl.bisect(loop(), "native", inputs=start, **ON)
    assert found.fault is not None
    assert (found.fault.ops, found.fault.iterations) == (("SIN",), (3,))


def test_a_branch(tmp_path: Path) -> None:
    g = Graph()
    chosen, x = g.input((1,), BOOL), g.input((5,))
    (y,) = if_node(g, [chosen, x], 1, 2, x)
    sides = [subgraph(name, [((5,), FLOAT)], part) for name, part in (("then", _negated), ("else", _sine))]
    content = write(model(g.build(y), *sides))
    large = np.linspace(1, 3, 5, dtype=np.float32)
    with planted(tmp_path / "kernels", KERNELS["a large angle"]):
        for choice, ops in ((True, None), (False, ("SIN",))):
            given = {"main_in0": np.array([choice]), "main_in1": large}
            found = litecl.bisect(content, "native", inputs=given, **ON)
            assert (found.fault.ops if found.fault else None) == ops


def test_rounding_is_no_fault() -> None:
    found = litecl.bisect(doubling(18), "native", **ON)
    assert found.verdict == "rounding", found
    assert [point.node for point in found.growth][-1] == 54
    assert found.growth[0].size < 1e-6 < 1e-4 < found.growth[-1].size


def test_litert_against_its_reference(tmp_path: Path) -> None:
    """XNNPACK rounds activations otherwise where weights are integers: a difference that is known, and is found."""
    pytest.importorskip("ai_edge_litert")
    g, rng = Graph(), np.random.default_rng(7)
    x = g.op(TANH, [g.input((4, 64))], NoOptions())
    weights = g.const(rng.integers(-127, 128, (32, 64)).astype(np.int8), scale=0.01)
    x = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(write(model(g.build(g.op(SIN, [x], NoOptions())))))
    found = litecl.bisect(path, "litert", "litert-ref")
    assert found.fault is not None
    assert found.fault.ops == ("FULLY_CONNECTED",)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, case = tmp_path / "zoo.tflite", tmp_path / "case"
    path.write_bytes(zoo())
    arguments = "bisect", path, "--suspect", "native", "--cache", tmp_path / "cache", "--json"
    assert main([*map(str, arguments)]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "right"
    with planted(tmp_path / "kernels", KERNELS["no root"]):
        assert main([*map(str, (*arguments, "-o", case))]) == 1
        found = json.loads(capsys.readouterr().out)
        assert (found["verdict"], found["fault"]["ops"]) == ("fault", ["L2_NORMALIZATION"])
        assert main([*shlex.split(found["command"])[1:], "--cache", str(tmp_path / "cache")]) == 1
        assert "Wrong given right inputs: L2_NORMALIZATION (node 0)" in capsys.readouterr().out


def test_what_cannot_be_bisected(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no input 'z'"):
        litecl.bisect(zoo(), "native", inputs={"z": np.zeros(1)})
    with pytest.raises(DeviceNotFound):
        litecl.bisect(zoo(), "no such device")
    path = tmp_path / "other.tflite"
    for runtimes in ({"suspect": str(path)}, {"reference": path}):
        with pytest.raises(ModelError, match=f"compare two models layer by layer: litecl diff MODEL {path}"):
            litecl.bisect(zoo(), **runtimes)
    with pytest.raises(ModelError, match="the verdict is right"):
        write_case(litecl.bisect(zoo(), "interpreter"), tmp_path)

"""litecl verify --runtime: planted faults of a runtime are found, made small and named; known ones do not count."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.bisection.tolerance import Tolerance
from litecl.cases import unary
from litecl.cli import main
from litecl.conformance import tflite_runtime_faults
from litecl.conformance.catalogue import check_of, selected
from litecl.conformance.faults import known_fault
from litecl.conformance.kit import Kit, _batches
from litecl.conformance.known import Known
from litecl.conformance.litert_faults import NEWEST
from litecl.conformance.program import Program
from litecl.conformance.runtimes import suspect
from litecl.conformance.spread import explains
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, MissingExtra, ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import every_op
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.unary import NEG
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.report import verified
from litecl.verify.catalogue import named_cases
from litecl.verify.document import replay
from litecl.verify.record import CRASHED, FAIL, PASS, REFUSED, TIMEOUT, DeviceResult, Result, Row
from litecl.verify.supervise import Plan, Run, Task
from support.build import Graph, model

PLANTED = Path(__file__).resolve().parents[1] / "support" / "planted"
CHAIN = "chain/denormal numbers are kept"  # which has NEG among others
ONE = Row("x", "x", 1, "", "", "", FAIL)


def some(op: str) -> str:
    """The name of an operator's first case."""
    return next(name for name, case in named_cases().items() if case.op.name == op)


@pytest.fixture(scope="module", autouse=True)
def _path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PLANTED), prepend=":")
        patch.setenv("LITECL_PLANTED", str(Path(verified.__file__).parents[3] / "kernels_cl"))
        yield


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeviceResult, Path]:
    """Return the results for the runtime with planted faults, and the folder of its smallest models."""
    folder = tmp_path_factory.mktemp("cases")
    names = [*map(some, ("EXP", "NEG", "COS", "CUMSUM", "TOPK_V2", "SIN", "ABS")), CHAIN]
    kit = Kit({"name": "faulty_runtime"}, Plan(jobs=2, timeout_s=3), folder)
    return kit.verify([check_of(name) for name in names], lambda: None), folder


@pytest.mark.nightly
def test_planted_faults_are_found(found: tuple[DeviceResult, Path]) -> None:
    device, _ = found
    assert (device.name, device.device["driver"]) == ("faulty_runtime", "1.5")
    rows = {row.op: row for row in device.rows}
    assert {op: row.status for op, row in rows.items()} == {
        "EXP": PASS,
        "NEG": FAIL,
        "COS": FAIL,
        "CUMSUM": CRASHED,
        "TOPK_V2": TIMEOUT,
        "SIN": REFUSED,
        "ABS": PASS,
        "chain": FAIL,
    }
    assert rows["CUMSUM"].reason == "the process killed by SIGSEGV"
    assert "not repeatable" in rows["COS"].reason and "Didn't find op" in rows["SIN"].reason
    assert rows["NEG"].relative == pytest.approx(0.01, rel=0.1)
    assert replay(device, rows["NEG"]) == f"litecl verify --runtime faulty_runtime --replay {shlex.quote(some('NEG'))}"


@pytest.mark.nightly
def test_failures_are_made_small_and_fail_alone(found: tuple[DeviceResult, Path]) -> None:
    """The chain is reduced to its wrong operator."""
    device, folder = found
    rows = {row.op: row for row in device.rows}
    assert {op: row.kernels for op, row in rows.items() if row.case} == {
        op: ("NEG" if op == "chain" else op,) for op in ("NEG", "COS", "CUMSUM", "TOPK_V2", "chain")
    }
    case = folder / rows["chain"].case
    smallest = read((case / "case.tflite").read_bytes())
    assert [node.op.name for node in smallest.subgraphs[0].nodes] == ["NEG"]
    inputs, expected = (np.load(case / name) for name in ("inputs.npz", "expected.npz"))
    np.testing.assert_array_equal(expected[expected.files[0]], -inputs[inputs.files[0]])


@pytest.mark.nightly
def test_the_same_checks_give_the_same_page(found: tuple[DeviceResult, Path], tmp_path: Path) -> None:
    arguments = ["verify", "--runtime", "faulty_runtime", "--ops", "neg,graph", "--graphs", "6", "--seed", "3"]
    files = [tmp_path / f"result{ending}" for ending in verified.FORMATS]
    written = []
    for jobs in ("1", "2"):
        told = [part for file in files for part in ("-o", str(file))]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["litecl", *arguments])
            assert main([*arguments, "--jobs", jobs, *told]) == 1
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    rows = json.loads(files[0].read_text())["devices"][0]["rows"]
    assert sum(row["op"] == "graph" for row in rows) == 6


@pytest.mark.nightly
def test_runtimes_are_compared(found: tuple[DeviceResult, Path]) -> None:
    """A table of the checks that fail on some, with the others' outcomes."""
    device, _ = found
    well = replace(
        device, device={**device.device, "name": "other"}, rows=tuple(replace(r, status=PASS) for r in device.rows)
    )
    environment = {"system": "s", "processor": "p", "cores": 1, "python": "3", "numpy": "2", "litecl": "0"}
    text = verified.to_markdown(
        Result(environment | {"packages": {}, "variables": {}}, (device, well), "litecl verify")
    )
    table = text.partition("## Checks that fail")[2].partition("##")[0]
    assert f"| {some('CUMSUM')} | crashed | pass |" in table and some("EXP") not in table


@pytest.mark.nightly
def test_a_program_is_checked() -> None:
    command = shlex.join([sys.executable, str(PLANTED / "faulty_program.py")])
    checks = [check_of(some(op)) for op in ("CEIL", "FLOOR", "SQRT", "ROUND")]
    device = Kit({"command": command}, Plan(jobs=1, timeout_s=60)).verify(checks, lambda: None)
    assert [row.status for row in device.rows] == [FAIL, REFUSED, CRASHED, PASS]
    assert [row.reason for row in device.rows[1:3]] == ["no kernel of FLOOR", "killed by signal 6"]


def test_a_program_that_writes_no_archive(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; open(sys.argv[3], 'wb').write(b'PK\\x03\\x04 cut')")
    program = Program(shlex.join([sys.executable, str(tmp_path / "program.py")]))
    case = next(case for case in unary.CASES if case.op.name == "NEG")
    with pytest.raises(ModelError, match=r"outputs\.npz: not a \.npz file"):
        program.prepare(write(case.model()))(case.feeds)


@pytest.mark.parametrize(
    ("command", "said"), [("nosuch", "there is no such program"), ("", "there is no such"), ("'a b", "No closing quot")]
)
def test_a_program_that_is_not_there(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--replay", some("NEG"), "--command", command]) == 1
    assert f"LiteclError: {command!r}: {said}" in capsys.readouterr().err


@pytest.mark.nightly
def test_known_faults_of_litert_do_not_count(tmp_path: Path) -> None:
    """A loop is reduced to itself."""
    file = tmp_path / "result.json"
    arguments = ["verify", "--runtime", "litert-ref", "--ops", "ADD_N,TOPK_V2,WHILE", "--graphs", "0", "-o", str(file)]
    assert main(arguments) == 0
    rows = {row["check"]: row for row in json.loads(file.read_text())["devices"][0]["rows"] if row["waived"]}
    assert {*rows} == {"ADD_N/known: ADD_N", "TOPK_V2/known: TOPK_V2", "WHILE/swapped variables"}
    assert rows["WHILE/swapped variables"]["kernels"] == ["WHILE"]
    told = "a loop's variables are written one by one, even if they swap values (LiteRT 1.4.0 to "
    assert rows["WHILE/swapped variables"]["waived"].startswith(told)


def test_a_failure_that_cannot_be_made_smaller_says_so() -> None:
    """A worker that dies, or does not start: the row stays, with the reason."""
    kit, check = Kit({"name": "no such runtime"}, Plan(jobs=1, timeout_s=60)), some("NEG")
    run = Run(Task(lambda names: {}, {}), kit.plan, lambda: None)
    run.rows[check] = replace(ONE, check=check, reason="wrong values")
    kit._shrink(run, [check_of(check)])
    assert run.rows[check].status == FAIL
    assert run.rows[check].reason.startswith("wrong values; not made smaller: the process ended with exit code 1")


def test_a_known_fault_of_a_smallest_model() -> None:
    g = Graph()
    x, y = g.input((3,)), g.input((3,))
    runtime = {"name": "litert", "platform": "ai_edge_litert", "driver": NEWEST}
    for function, fault in ((ActivationFunctionType.TANH, "fused TANH"), (ActivationFunctionType.RELU, None)):
        small = model(g.build(g.op(ADD, [x, y], AddOptions(function))))
        small = replace(small, subgraphs=(replace(small.subgraphs[0], nodes=small.subgraphs[0].nodes[-1:]),))
        told = known_fault(ONE, small, runtime)
        assert told is None if fault is None else (told or "").startswith(fault)


def test_a_known_fault_explains_no_larger_error() -> None:
    row = replace(ONE, check="FULLY_CONNECTED/8 bits", op="FULLY_CONNECTED", relative=0.01)
    case = named_cases()[row.check].model()
    runtime = {"name": "litert", "platform": "ai_edge_litert", "driver": NEWEST}
    assert "asymmetrically" in (known_fault(row, case, runtime) or "")
    assert known_fault(replace(row, relative=0.5), case, runtime) is None
    assert known_fault(row, case, runtime | {"name": "litert-reference"}) is None
    assert known_fault(row, case, runtime | {"platform": "tflite_runtime"}) is None


@pytest.mark.parametrize("status", [FAIL, CRASHED])
def test_a_fault_of_numbers_explains_no_death(status: str) -> None:
    g = Graph()
    x = g.input((3,))
    small = model(g.build(g.op(ADD, [x, x], AddOptions(ActivationFunctionType.TANH))))
    runtime = {"name": "litert", "platform": "ai_edge_litert", "driver": NEWEST}
    assert (known_fault(replace(ONE, status=status), small, runtime) is None) == (status == CRASHED)
    bare = replace(ONE, status=CRASHED, check="DEPTHWISE_CONV_2D/no bias")
    assert "ends the process" in (known_fault(bare, small, runtime) or "")


def test_nodes_whose_results_nobody_reads() -> None:
    """XNNPACK of LiteRT 1.4.0 dies of them."""
    runtime = {"name": "litert", "platform": "ai_edge_litert", "driver": "1.4.0"}
    for is_read in (True, False):
        g = Graph()
        x = g.input((3,))
        y = g.op(ADD, [x, x], AddOptions())
        small = model(g.build(g.op(ADD, [x, x], AddOptions()), *([y] if is_read else [])))
        assert (known_fault(replace(ONE, status=CRASHED), small, runtime) is None) == is_read


@pytest.mark.parametrize(
    ("version", "first", "last", "found"),
    [
        ("1.3.9", "1.4.0", "2.3.0", False),
        ("1.4.0", "1.4.0", "1.4.0", True),
        ("1.4.0", "2.1.0", "2.3.0", False),
        ("2.1.0", "1.4.0", "2.3.0", True),
        ("2.2.0", "1.4.0", "2.1.0", False),
        ("2.2.0", "2.1.0", "2.3.0", True),
        ("3.0.0", "2.1.0", "2.1.0", False),
        ("3.0.0", "2.1.0", "2.3.0", True),
    ],
)
def test_known_faults_have_versions(version: str, first: str, last: str, found: bool) -> None:
    """A fault that the newest version has is believed to be in those to come; a mended one not."""
    assert Known("", ("litert",), first, last).is_in(version, "2.3.0") == found


def test_known_faults_of_tflite_runtime() -> None:
    """Those of LiteRT that it has too, and its own; not those that LiteRT alone has."""
    runtime = {"name": "tflite_runtime", "platform": "tflite_runtime", "driver": tflite_runtime_faults.NEWEST}
    bits = named_cases()["FULLY_CONNECTED/8 bits"].model()
    told = "hybrid FULLY_CONNECTED with scales of channels gives the bias alone (tflite_runtime 2.14.0)"
    assert known_fault(replace(ONE, relative=0.9), bits, runtime) == told
    g = Graph()
    other = model(g.build(g.op(NEG, [g.input((3,))], NoOptions())))
    for check, is_known in (("TOPK_V2/known: TOPK_V2", True), ("SQRT/zero", False), ("PRELU/one slope", True)):
        assert (known_fault(replace(ONE, check=check), other, runtime) is not None) == is_known
    assert {fault.package for fault in tflite_runtime_faults.FAULTS} == {"tflite_runtime"}


def test_checks_of_runtimes() -> None:
    """Every operator's cases, those without a kernel on devices too, and random graphs by their names."""
    checks = selected(graphs=3, seed=5)
    with_cases = {case.op.name for case in named_cases().values()}
    assert {check.op for check in checks} >= with_cases | {"WHILE", "attention", "graph"}
    assert len(with_cases) > 0.6 * len([op for op in every_op() if not op.name.startswith("litecl.")])
    assert {check.op for check in selected(quick=True)} >= with_cases
    (graph,) = selected(only="graph/5/2")
    assert [n.op for n in graph.model().subgraphs[0].nodes] == [n.op for n in checks[-1].model().subgraphs[0].nodes]
    with pytest.raises(ModelError, match="there is no check 'graph/5'"):
        selected(only="graph/5")
    batches = _batches(checks)
    assert sum(map(len, batches)) == len(checks)
    ops = [{check.op for check in batch} for batch in batches]
    assert not any(a & b for i, a in enumerate(ops) for b in ops[:i])


def test_runtimes_are_named() -> None:
    assert (
        suspect("litert").steps == 1
        and suspect("litert-ref").steps == suspect("litert-reference").steps == 0 == suspect("litecl").steps
    )
    with pytest.raises(MissingExtra, match="runtime no_such: cannot import no_such"):
        suspect("no_such")
    with pytest.raises(LiteclError, match="expected a class Interpreter in json"):
        suspect("json")


def test_a_runtime_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--runtime", "no_such_runtime", "--ops", "ABS"]) != 0
    assert "cannot import no_such_runtime" in capsys.readouterr().err


@pytest.mark.parametrize(("off", "explained"), [(1, True), (30, True), (100, False)])
def test_errors_within_what_operators_may_be_off(off: int, explained: bool) -> None:
    """A step of the product is some twenty of the result."""
    g = Graph()
    coarse, fine = (Quantization(np.float32([scale]), np.int64([0])) for scale in (1.0, 0.05))
    x = g.input((3, 5), TensorType.INT8)
    g.tensors[x] = replace(g.tensors[x], quantization=coarse)
    (product,) = g.node(MUL, (x, x), [TensorSpec(TensorType.INT8, (3, 5))], MulOptions())
    (result,) = g.node(QUANTIZE, (product,), [TensorSpec(TensorType.INT8, (3, 5))], NoOptions())
    for tensor, by in ((product, coarse), (result, fine)):
        g.tensors[tensor] = replace(g.tensors[tensor], quantization=by)
    small = model(g.build(result))
    given = np.random.default_rng(0).integers(-2, 3, (3, 5)).astype(np.int8)
    interpreter = Interpreter(small)
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, given)
    interpreter.invoke()
    expected = interpreter.get_tensor(result)
    assert explains(small, [given], [expected], [expected - np.int8(off)], Tolerance(steps=1)) == explained

"""Models that keep states, in `litecl serve` and `Predictor`: clients share them, no batch does, and litecl says so."""

import json
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from litecl import Predictor, sample
from litecl.cli import main
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec, keeps_states
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MAXIMUM, SUB, AddOptions, SubOptions
from litecl.interpreter.ops.control import CALL_ONCE, IF, CallOnceOptions, IfOptions
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.schema import TensorType
from litecl.serve import batching
from support import shared
from support.build import Graph, model, randn
from support.served import started
from support.variable_models import assign, is_positive, read

_WORD = "esphome-micro-wake-word-models/okay_nabu.tflite"
_SPEC = TensorSpec(TensorType.FLOAT32, (1, 1))
_RNG = np.random.default_rng(5)


def _once(g: Graph) -> Graph:
    """Give a variable its first value, in a subgraph that runs once."""
    first = Graph("first")
    g.node(CALL_ONCE, (), (), CallOnceOptions(1))
    assign(first, "n", first.const(np.zeros((1, 1), np.float32)))
    return first


def _late() -> Model:
    """Adds to each row how often the model has run beyond ten times: the first runs do not show that it counts."""
    g = Graph()
    first = _once(g)
    assign(g, "n", g.op(ADD, [read(g, "n", _SPEC), g.const(np.float32([[1]]))], AddOptions()))
    beyond = g.op(SUB, [read(g, "n", _SPEC), g.const(np.float32([[10]]))], SubOptions())
    late = g.op(MAXIMUM, [beyond, g.const(np.float32([[0]]))], NoOptions())
    return model(g.build(g.op(ADD, [g.input((1, 4), signature=(-1, 4)), late], AddOptions())), first.build())


def _constant() -> Model:
    """Adds a variable that is written once."""
    g = Graph()
    first = _once(g)
    y = g.op(ADD, [g.input((1, 4), signature=(-1, 4)), read(g, "n", _SPEC)], AddOptions())
    return model(g.build(y), first.build())


def _in_a_branch() -> Model:
    """Writes a variable where the input is positive."""
    g, yes, no = Graph(), Graph("yes"), Graph("no")
    x = g.input((1, 1))
    for branch in (yes, no):
        branch.input((1, 1))
    assign(yes, "n", yes.inputs[0])
    answers = [branch.op(TANH, [branch.inputs[0]], NoOptions()) for branch in (yes, no)]
    (y,) = g.node(IF, [is_positive(g, x), x], [_SPEC], IfOptions(1, 2))
    return model(g.build(y), *(each.build(answer) for each, answer in zip((yes, no), answers, strict=True)))


def _svdf(rows: int) -> Model:
    """Keeps the last ten inputs of each row, in a variable tensor."""
    g = Graph()
    parts = [g.const(randn(_RNG, *shape)) for shape in ((8, 6), (8, 10), (4,))]
    y = g.op(SVDF, [g.input((rows, 6)), *parts, g.variable((rows, 80))], SVDFOptions(2))
    return model(g.build(y))


def _stateless() -> Model:
    g = Graph()
    return model(g.build(g.op(TANH, [g.input((1, 4), signature=(-1, 4))], NoOptions())))


@pytest.mark.parametrize(
    ("made", "wanted"),
    [(_late(), True), (_in_a_branch(), True), (_svdf(1), True), (_constant(), False), (_stateless(), False)],
    ids=["late", "in_a_branch", "svdf", "constant", "stateless"],
)
def test_models_that_keep_states_are_known_without_a_run(made: Model, wanted: bool) -> None:
    assert keeps_states(made, 0) == wanted
    with Predictor(write(made), cpu=True) as predictor:
        assert predictor.keeps_states == wanted
        assert (batching.why_apart(predictor) == "it keeps states") == wanted


def test_rows_for_which_there_are_states_are_all_given() -> None:
    """A copy of the last row in place of those that lack would change the states of these."""
    content = write(_svdf(4))
    x = randn(_RNG, 8, 6)
    litert = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    litert.allocate_tensors()
    wanted = []
    for part in np.split(x, 2):
        litert.set_tensor(litert.get_input_details()[0]["index"], part)
        litert.invoke()
        wanted.append(litert.get_tensor(litert.get_output_details()[0]["index"]))
    with Predictor(content) as predictor:
        with pytest.raises(ShapeError, match=r"a model of 4 rows, which keeps states: .* a multiple of them, got 3"):
            predictor(x[:3])
        with pytest.raises(ShapeError, match="got 6"):
            predictor(x[:6])
        (got,) = predictor(x).values()
    np.testing.assert_allclose(got, np.concatenate(wanted), rtol=1e-5, atol=1e-5)


def _asked(x: Array) -> dict[str, Any]:
    given = {"name": "input_audio", "shape": [*x.shape], "datatype": "INT8", "data": x.reshape(-1).tolist()}
    return {"inputs": [given]}


@shared.needs_shared
@pytest.mark.parametrize("options", [(), ("--cpu",), ("--batch", "1")])
def test_clients_share_a_models_states(options: tuple[str, ...]) -> None:
    """Every request is a step of the same run, as by LiteRT's kernels. The server says so, and its description too."""
    pytest.importorskip("uvicorn", reason="litecl[serve] is not installed")
    path = shared.model_file(_WORD)
    rng, loud = np.random.default_rng(3), 127 * np.sign(np.sin(np.arange(40) / 6))
    steps = np.clip(loud[:, None, None, None] + 30 * rng.standard_normal((40, 1, 3, 40)), -128, 127).astype(np.int8)
    litert = LiteRT(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    litert.allocate_tensors()
    wanted = []
    for step in steps:
        litert.set_tensor(litert.get_input_details()[0]["index"], step)
        litert.invoke()
        wanted.append(int(litert.get_tensor(litert.get_output_details()[0]["index"]).item()))
    assert len({*wanted}) > 3
    with started(path, *options) as server:
        (warning,) = [line for line in server.told if line.startswith("warning: ")]
        assert warning == (
            "warning: okay_nabu keeps states, which all clients share: a request changes the results of later ones\n"
        )
        assert options == ("--batch", "1") or "a request is a batch, because it keeps states" in server.told[-1]
        told = json.loads(server.client.get("/v2/models/okay_nabu"))
        assert told["parameters"] == {"keeps_states": True}
        got = []
        for part in [*steps[:38], np.concatenate(steps[38:])]:  # the last request has two rows, one after another
            status, answer = server.client.post(_asked(part), "/v2/models/okay_nabu/infer")
            assert status == 200, answer
            got += answer["outputs"][0]["data"]
    assert got == wanted


def test_a_model_without_states_is_served_without_a_warning(tmp_path: Any) -> None:
    pytest.importorskip("uvicorn", reason="litecl[serve] is not installed")
    with started(sample.write(tmp_path).model) as server:
        assert not [line for line in server.told if "states" in line]
        assert json.loads(server.client.get("/v2/models/model"))["parameters"] == {"keeps_states": False}


def test_a_server_has_states_once(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With two buffers, each would have its own, and chance would say which of them a request gets."""
    pytest.importorskip("uvicorn", reason="litecl[serve] is not installed")
    file = tmp_path / "late.tflite"
    file.write_bytes(write(_late()))
    assert main(["serve", str(file), "--cpu", "--buffers", "2", "--port", "0"]) == 1
    assert "--buffers: the model keeps states, which 2 buffers would each have: expected 1" in capsys.readouterr().err

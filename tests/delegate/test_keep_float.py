"""CLDelegate(keep_float=...): nodes compute in float32 though all others compute in halves, whatever is fused.

A node that is kept has the bits that it has with precision="fp32"; its neighbours those of precision="fp16".
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Const
from litecl.delegate.claim.kept import kept_in_float
from litecl.delegate.matmul import product
from litecl.delegate.plan.plan import Plan
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.control import CALL, CallOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.schema import TensorType
from support import networks
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, next_, outputs, prepared, while_model
from support.planned_gpu import PlannedGpu

_FUSED = ("edges", "3x3, stride 2", "depthwise before", "gates before", "batch", "batch, known")


def _run(made: Model, feeds: Collection[Array], **options: Any) -> tuple[Array, Interpreter]:
    interpreter = prepared(made, feeds, [CLDelegate(**{"strict": True} | options)])
    return outputs(interpreter)[-1], interpreter


def _dense(g: Graph, x: int, w: Array) -> int:
    return g.op(FULLY_CONNECTED, [x, g.const(w), None], FullyConnectedOptions())


def _two_layers() -> tuple[Model, list[Array]]:
    """Two layers whose weights are large, with an operator between."""
    rng, g = np.random.default_rng(2), Graph()
    x = _dense(g, g.input((3, 600)), randn(rng, 520, 600, scale=0.04))
    y = _dense(g, g.op(TANH, [x], NoOptions()), randn(rng, 530, 520, scale=0.04))
    return model(g.build(x, y)), [randn(rng, 3, 600)]


def _name(made: Model, position: int, subgraph: int = 0) -> str:
    graph = made.subgraphs[subgraph]
    return graph.tensors[graph.nodes[position].outputs[0]].name


def test_only_what_is_named_on_a_processor() -> None:
    made, feeds = _two_layers()
    floats, halves = (_run(made, feeds, precision=precision) for precision in ("fp32", "fp16"))
    first = [interpreter.get_tensor(made.subgraphs[0].outputs[0]) for _, interpreter in (floats, halves)]
    assert not np.array_equal(*first)
    _, one = _run(made, feeds, precision="fp16", keep_float=[_name(made, 0)])
    np.testing.assert_array_equal(one.get_tensor(made.subgraphs[0].outputs[0]), first[0])
    _, other = _run(made, feeds, precision="fp16", keep_float=[2])
    np.testing.assert_array_equal(other.get_tensor(made.subgraphs[0].outputs[0]), first[1])
    assert "; 1 node kept in float32" in other.delegation_report().halves  # type: ignore[attr-defined]
    both, _ = _run(made, feeds, precision="fp16", keep_float=[_name(made, 0), (0, 2)])
    np.testing.assert_array_equal(both, floats[0])
    for kept in ([0], [2]):
        assert not np.array_equal(_run(made, feeds, precision="fp16", keep_float=kept)[0], floats[0])


def _halved(plan: Plan) -> dict[int, str]:
    """The nodes whose launches read weights that are halves, with the kernel."""
    return {
        work.node: work.launch.entry
        for work in plan.works
        if any(isinstance(arg, Const) and arg.data.dtype == np.float16 for arg in work.launch.args)
        or "HALF_WEIGHTS" in work.launch.defines
    }


def _planned(content: bytes, device: str, keep_float: Collection[Any]) -> Plan:
    found = PlannedGpu(device)
    delegate = CLDelegate(found, strict=True, precision="fp16", keep_float=keep_float)
    Interpreter(model_content=content, delegates=[delegate]).allocate_tensors()
    (plan,) = found.plans
    return plan


@pytest.mark.parametrize("device", ["arm", "nvidia", "intel, integrated"])
@pytest.mark.parametrize("network", [networks.efficientnet_b0, networks.mobilenet_v2, networks.bert])
def test_networks(network: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every kind of kernel, each node is kept in turn; no other node's launch changes."""
    monkeypatch.setattr(product, "CACHED_WEIGHTS", 1 << 10)
    content = networks.bert(16, 1, 1, 64, 4) if network is networks.bert else network(64)
    whole = _planned(content, device, [])
    halved = _halved(whole)
    parts = {node: [node, *(p for (_, p), (_, into) in whole.merged.items() if into == node)] for node in halved}
    kinds = {(kind, len(parts[node])): node for node, kind in halved.items()}
    assert max(len(parts[node]) for node in kinds.values()) > 1
    for node in kinds.values():
        for part in {parts[node][0], parts[node][-1]}:
            left = _halved(_planned(content, device, [part]))
            assert left == {other: kind for other, kind in halved.items() if other != node}, (node, part)
    count = len(Interpreter(model_content=content).model.subgraphs[0].nodes)
    assert _halved(_planned(content, device, range(count))) == {}


def _loop(rng: np.random.Generator) -> Model:
    w = randn(rng, 520, 520, scale=0.05)
    return while_model(
        [((), INT), ((2, 520), FLOAT)],
        below(3),
        lambda g, x: [next_(g, x[0]), g.op(TANH, [_dense(g, x[1], w)], NoOptions())],
    )


def test_in_a_loop() -> None:
    """By the name of a result within it, by its place, or with the whole loop."""
    rng = np.random.default_rng(8)
    made, feeds = _loop(rng), [np.int32(0), randn(rng, 2, 520)]
    floats, halves = (_run(made, feeds, precision=precision)[0] for precision in ("fp32", "fp16"))
    assert not np.array_equal(floats, halves)
    body = made.subgraphs[2]
    (dense,) = (i for i, node in enumerate(body.nodes) if node.op is FULLY_CONNECTED)
    for keep in ([_name(made, dense, 2)], [(2, dense)], [_name(made, 0)], [0]):
        kept, _ = _run(made, feeds, precision="fp16", keep_float=keep)
        np.testing.assert_array_equal(kept, floats)
    other, _ = _run(made, feeds, precision="fp16", keep_float=[(1, 0)])
    np.testing.assert_array_equal(other, halves)


def test_in_a_call() -> None:
    """Nodes of a subgraph that stand in the place of a call: by their own place, or with the call."""
    rng, inner, g = np.random.default_rng(9), Graph(), Graph()
    x, shape = g.input((3, 600)), (3, 520)
    y = _dense(inner, inner.input((3, 600)), randn(rng, 520, 600, scale=0.04))
    called = g.node(CALL, [x], [TensorSpec(TensorType.FLOAT32, shape, name="called")], CallOptions(1))[0]
    made = model(g.build(_dense(g, called, randn(rng, 530, 520, scale=0.04))), inner.build(y))
    feeds = [randn(rng, 3, 600)]
    floats, halves = (_run(made, feeds, precision=precision)[0] for precision in ("fp32", "fp16"))
    for whole, part in (([0, 1], [0]), ([(1, 0), 1], [(1, 0)])):
        np.testing.assert_array_equal(_run(made, feeds, precision="fp16", keep_float=whole)[0], floats)
        kept = _run(made, feeds, precision="fp16", keep_float=part)[0]
        assert not np.array_equal(kept, floats) and not np.array_equal(kept, halves)


def test_what_names_no_node() -> None:
    made, feeds = _two_layers()
    for wrong, said in (
        (["nothing"], "keep_float: no node has a result 'nothing'"),
        ([9], "keep_float: the model has no node 9 in subgraph 0"),
        ([(4, 0)], "keep_float: the model has no node 0 in subgraph 4"),
        ([-1], "no node -1 in subgraph 0"),
        ([f"{_name(made, 0)}x"], "did you mean one of"),
    ):
        with pytest.raises(DelegateError, match=said):
            _run(made, feeds, precision="fp16", keep_float=wrong)
    with pytest.raises(DelegateError, match="keep_float: expected a list, got 'x'"):
        CLDelegate(keep_float="x")
    assert kept_in_float(made, []) == frozenset()


@pytest.mark.parametrize("option", ["keep_float", "deny_nodes"])
def test_what_is_no_place_of_a_node(option: str) -> None:
    for wrong in (5, "x"):
        with pytest.raises(DelegateError, match=f"{option}: expected a list, got {wrong!r}"):
            CLDelegate(**{option: wrong})
    for node in (1.5, (0,), (0, "a"), (0, 1, 2), None):
        with pytest.raises(DelegateError, match=f"{option}: expected a node, or a subgraph and a node"):
            CLDelegate(**{option: [node]})
    given: Any = [np.int64(3), (np.int32(1), 4), [2, 5]]
    assert getattr(CLDelegate(**{option: given}), option) == {(0, 3), (1, 4), (2, 5)}


def test_as_a_string() -> None:
    delegate = CLDelegate.from_strings({"keep_float": "3, 1:4, StatefulPartitionedCall:0,a/b;a/c"})
    assert delegate.keep_float == {3, (1, 4), "StatefulPartitionedCall:0", "a/b;a/c"}

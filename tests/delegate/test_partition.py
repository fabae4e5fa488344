"""Partitioning: reasons, clustering and options, with no device."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.analysis.list_writes import update_lists_in_place
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import partition
from litecl.delegate.claim.region import FOLDED, Partitioning
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops import CL_OPS
from litecl.delegate.target import Target
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.spectral import COMPLEX_ABS, RFFT2D
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(5)


def test_an_operator_without_kernels_imports_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """To list all kernels imports all, which takes longer than planning."""
    monkeypatch.setattr(type(CL_OPS), "__iter__", lambda self: pytest.fail("all kernels are imported"))
    g = Graph()
    user = replace(EXP, name="mine.Exp", custom=True)
    result = parts(model(g.build(g.op(user, [g.input((2, 3))], NoOptions()))))
    assert result.reasons == {0: "no device kernel for mine.Exp"}


def diamond() -> Model:
    """x -> ADD -> EXP -> MUL <- ADD: the EXP can be kept from the device."""
    g = Graph()
    x = g.input((2, 3))
    first = g.op(ADD, [x, g.const(randn(RNG, 3))], AddOptions())
    middle = g.op(EXP, [first], NoOptions())
    side = g.op(ADD, [first, first], AddOptions())
    return model(g.build(g.op(MUL, [middle, side], MulOptions())))


def parts(
    model_: Model,
    options: CLOptions = CLOptions(),  # noqa: B008
    preserve: bool = False,
    target: Target | None = None,
) -> Partitioning:
    graph = model_.subgraphs[0]
    specs = propagate(model_, {0: [graph.tensors[t].static_shape for t in graph.inputs]})
    return partition(0, explicit(model_, specs), options, preserve=preserve, target=target)


def test_all_claimed_is_one_region() -> None:
    found = parts(diamond())
    (region,) = found.regions
    assert region.nodes == (0, 1, 2, 3)
    assert region.inputs == (0,)
    assert len(region.outputs) == 1
    assert found.reasons == {}


def test_a_refused_node_splits_and_its_neighbours_cluster() -> None:
    found = parts(diamond(), CLOptions(deny_ops=frozenset({"EXP"})))
    assert [r.nodes for r in found.regions] == [(0, 2), (3,)]
    assert found.reasons == {1: "denied by deny_ops"}
    assert sorted(i for run in found.order for i in run) == [0, 1, 2, 3]


def test_deny_nodes_and_allow_ops() -> None:
    assert parts(diamond(), CLOptions(deny_nodes=[1])).reasons == {1: "denied by deny_nodes"}
    found = parts(diamond(), CLOptions(allow_ops=frozenset({"ADD"})))
    assert found.reasons == {1: "not in allow_ops", 3: "not in allow_ops"}


def test_small_partitions_are_left_to_the_cpu() -> None:
    found = parts(diamond(), CLOptions(deny_ops=frozenset({"EXP"}), min_nodes_per_partition=2))
    assert [r.nodes for r in found.regions] == [(0, 2)]
    assert "min_nodes_per_partition is 2" in found.reasons[3]
    found = parts(diamond(), CLOptions(deny_ops=frozenset({"EXP"}), max_delegated_partitions=1))
    assert [r.nodes for r in found.regions] == [(0, 2)]
    assert found.reasons[3] == "not among the 1 largest partitions"


def test_constant_nodes_are_folded() -> None:
    g = Graph()
    x = g.input((3,))
    folded = g.op(EXP, [g.const(randn(RNG, 3))], NoOptions())
    found = parts(model(g.build(g.op(ADD, [x, folded], AddOptions()))))
    assert found.reasons == {0: FOLDED}
    assert found.regions[0].nodes == (1,)
    assert found.regions[0].inputs == (x,)


def test_a_folded_node_reads_no_result_of_a_region() -> None:
    g = Graph()
    x = g.op(EXP, [g.input((2, 3))], NoOptions())
    turned = g.op(ADD, [g.op(SHAPE, [x], ShapeOptions(TensorType.INT32)), g.const(np.int32([1, -1]))], AddOptions())
    y = g.op(RESHAPE, [g.op(MUL, [x, x], MulOptions()), turned], ReshapeOptions())
    (region,) = parts(model(g.build(y))).regions
    assert region.outputs == (g.nodes[-1].outputs[0],)
    (region,) = parts(model(g.build(g.op(SHAPE, [x], ShapeOptions(TensorType.INT32)), x))).regions
    assert region.outputs == (x,)


def test_preserved_tensors_are_all_outputs() -> None:
    (region,) = parts(diamond(), preserve=True).regions
    assert len(region.outputs) == 4


class _CountedNodes(tuple[Any, ...]):
    """Nodes that count how often somebody goes through all of them."""

    walks = 0

    def __iter__(self) -> Any:
        _CountedNodes.walks += 1
        return super().__iter__()


def test_nodes_are_walked_through_as_often_with_many_regions() -> None:
    """Finding regions, and writes of lists, takes time in proportion to the nodes."""
    walks = []
    for count in (4, 40):
        g = Graph()
        t = g.input((2, 3))
        for _ in range(count):
            t = g.op(EXP, [g.op(ADD, [t, t], AddOptions())], NoOptions())
        whole = model(g.build(t))
        (graph,) = whole.subgraphs
        counted = replace(whole, subgraphs=(replace(graph, nodes=_CountedNodes(graph.nodes)),))
        specs = propagate(whole, {0: [(2, 3)]})
        _CountedNodes.walks = 0
        source = explicit(counted, specs)
        assert len(partition(0, source, CLOptions(deny_ops=frozenset({"EXP"}))).regions) == count
        update_lists_in_place(counted, specs)
        walks.append(_CountedNodes.walks)
    assert walks[0] == walks[1]


def test_gpus_leave_what_none_has_run() -> None:
    """A CPU takes it."""
    g = Graph()
    y = g.op(BUCKETIZE, [g.input((2, 3))], BucketizeOptions((0.5,)))
    model_ = model(g.build(y))
    gpu = GpuTarget(4, 2, max_work_group_size=256, local_mem_bytes=1 << 15)
    assert parts(model_, target=gpu).reasons == {0: "no kernel for BUCKETIZE on GPUs"}
    assert not parts(model_, target=CpuTarget(8, 2)).reasons


def test_complex_numbers_go_to_kernels_that_know_them() -> None:
    """Others would take them for something else."""
    g = Graph()
    spectrum = g.op(RFFT2D, [g.input((3, 1, 8)), g.const(np.array([1, 8], np.int32))], NoOptions())
    same = g.op(RESHAPE, [spectrum, g.const(np.array([3, 5], np.int32))], ReshapeOptions())
    size = g.op(COMPLEX_ABS, [same], NoOptions())
    cast = g.op(CAST, [size], CastOptions(TensorType.FLOAT32, TensorType.COMPLEX64))
    reasons = {1: "input 0 has type COMPLEX64", 3: "output 0 has type COMPLEX64"}
    assert parts(model(g.build(cast))).reasons == reasons

"""The delegation report: its rows and their types, and how a notebook shows it."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.devices import choose
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.native.processors import processors
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.unary import EXP, NEG, RELU, TANH
from litecl.perf.models.build import Graph, model


def reported(**options: object) -> DelegationReport:
    """EXP and ADD on the device, NEG of them kept on the CPU."""
    g = Graph()
    x = g.input((2, 5))
    y = g.op(ADD, [g.op(EXP, [x], NoOptions()), g.const(np.ones(5, np.float32))], AddOptions())
    interpreter = Interpreter(model(g.build(g.op(NEG, [y], NoOptions()))), delegates=[CLDelegate(**options)])
    interpreter.allocate_tensors()
    interpreter.invoke()
    return DelegationReport.of(interpreter)


class Text(HTMLParser):
    """The text of a page; fails where tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def test_a_node_fused_into_one_that_is_fused_later() -> None:
    """RELU becomes part of ADD, and ADD of the chain that begins with EXP: one launch of EXP's computes all."""
    g = Graph()
    x, addend = g.input((2, 5)), g.input((2, 5))
    total = g.op(ADD, [g.op(EXP, [x], NoOptions()), addend], AddOptions())
    y = g.op(TANH, [g.op(RELU, [total], NoOptions())], NoOptions())
    interpreter = Interpreter(model(g.build(y)), delegates=[CLDelegate(strict=True)])
    interpreter.allocate_tensors()
    report = DelegationReport.of(interpreter)
    assert report.partitions[0].kernels == ("chain",)
    assert [row.into for row in report.nodes] == [None, (0, 0), (0, 0), (0, 0)]


def test_nodes_have_tensors_and_kernels() -> None:
    report = reported(deny_ops=["NEG"])
    exp, add, neg = report.nodes
    assert [(t.name, t.type, t.shape, t.size_bytes, t.constant) for t in exp.inputs] == [
        ("main_in0", "FLOAT32", (2, 5), 40, False)
    ]
    assert [t.constant for t in add.inputs] == [False, True]
    assert [t.tensor for t in add.outputs] == [t.tensor for t in neg.inputs]
    assert (neg.kernels, neg.reason) == ((), "denied by deny_ops")
    (region,) = report.partitions
    assert set(region.kernels) == {kernel for row in report.nodes for kernel in row.kernels} != set()
    data = json.loads(report.to_json())
    assert data["nodes"][1]["outputs"][0]["shape"] == [2, 5]


def test_a_notebook_shows_all_of_it() -> None:
    report = reported(deny_ops=["NEG"])
    text = Text(report._repr_html_()).text
    for part in ("2 of 3 nodes in 1 partition", "denied by deny_ops", "main_in0 FLOAT32[2,5], 40 B", report.device):
        assert part in text
    assert "script" not in report._repr_html_()


def test_a_notebook_shows_faults_as_text() -> None:
    report = DelegationReport("none", (), (), reported().counters, 0.0, 0, failures=("no <device> & no driver",))
    assert "no <device> & no driver" in Text(report._repr_html_()).text


def test_a_report_of_another_delegate_is_told_apart() -> None:
    class Other:
        def delegation_report(self) -> str:
            return "all well"

    with pytest.raises(DelegateError, match="expected a report of CLDelegate, got str"):
        DelegationReport.of(Other())


@pytest.mark.skipif(isinstance(choose(num_threads=1).target(), GpuTarget), reason="of the processor")
def test_it_says_how_many_threads() -> None:
    """The number chosen for a small model, and the requested number up to the number of cores."""
    small, asked = reported(), reported(num_threads=1000)
    assert small.threads == 1 and f"on {small.device} with 1 thread; built in" in small.lines[0]
    assert asked.threads is not None and asked.threads >= 1
    if asked.device == "native":
        assert asked.threads == processors()
    assert json.loads(asked.to_json())["threads"] == asked.threads

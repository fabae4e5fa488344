"""Notebooks show every result as tables, without a name of a model in them as markup; records become data frames."""

import dataclasses
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, get_type_hints

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

import litecl
from litecl.compiled_model import CompiledModel
from litecl.converter import Converter, Quantization
from litecl.delegate import CLDelegate, DelegationReport
from litecl.diff import diff_models
from litecl.generate.options import Generation, Timing
from litecl.interpreter import Interpreter, OpDetails, TensorDetails
from litecl.interpreter.data_frame import columns, frame
from litecl.interpreter.details import QuantizationParameters
from litecl.interpreter.errors import MissingExtra
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from support.pattern_models import classifier, quantized_classifier

MARKUP = "<script>alert(1)</script>"


def named() -> Model:
    """A model whose tensors have markup for names."""
    made = classifier()
    (graph,) = made.subgraphs
    tensors = tuple(dataclasses.replace(each, name=f"{MARKUP}{number}") for number, each in enumerate(graph.tensors))
    return dataclasses.replace(made, subgraphs=(dataclasses.replace(graph, tensors=tensors),))


def quantized() -> Any:
    images = np.random.default_rng(1).random((4, 8, 8, 3)).astype(np.float32)
    converter = Converter.from_tflite(
        write(named()), Quantization(activations="int8", data=[[x[None]] for x in images])
    )
    converter.convert()
    return converter.report


class Tags(HTMLParser):
    """The tags of a text, each of which must be closed, and the cells of each row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen = set[str]()
        self.rows: list[list[str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def _interpreter() -> Interpreter:
    interpreter = Interpreter(named(), delegates=[CLDelegate()])
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "interpreter": (_interpreter, "SOFTMAX"),
    "delegation": (lambda: _interpreter().delegation_report(), "SOFTMAX"),
    "predictor": (lambda: litecl.Predictor(write(named()), cpu=True), "float32"),
    "conversion": (quantized, "SOFTMAX"),
    "quantization": (lambda: quantized().quantization, "FULLY_CONNECTED"),
    "difference": (lambda: diff_models(write(classifier()), write(named())), "SOFTMAX"),
    "bisection": (lambda: litecl.bisect(write(named())), ""),
    "generation": (lambda: Generation(MARKUP + "\nmore", (1, 2), "max_tokens", Timing(1, 1.0, 2, 0.5)), ""),
}


@pytest.mark.parametrize(("make", "cell"), RESULTS.values(), ids=RESULTS)
def test_a_notebook_shows_it(make: Callable[[], Any], cell: str) -> None:
    tags = Tags(make()._repr_html_())
    assert tags.seen <= {"style", "div", "p", "table", "tr", "th", "td", "details", "summary", "br"}
    assert not cell or [row for row in tags.rows if cell in row]


def test_compiled_models_and_buffers_say_what_they_are() -> None:
    with CompiledModel.from_buffer(write(classifier())) as model:
        assert "nodes on the device>" in repr(model)
        (buffer,) = model.create_input_buffers(0)
        assert repr(buffer) == f"<TensorBuffer: float32{[*buffer.shape]}>"
        buffer.destroy()
    assert (repr(model), repr(buffer)) == ("<CompiledModel: closed>", "<TensorBuffer: destroyed>")


def test_details_have_the_keys_and_types_that_they_declare() -> None:
    interpreter = Interpreter(quantized_classifier())
    interpreter.allocate_tensors()
    peer = LiteRT(model_content=write(quantized_classifier()))
    for ours, theirs in zip(interpreter.get_tensor_details(), peer.get_tensor_details(), strict=False):
        assert ours.keys() == get_type_hints(TensorDetails).keys() == theirs.keys()
        parameters = ours["quantization_parameters"].keys()
        assert parameters == get_type_hints(QuantizationParameters).keys()
        assert parameters >= theirs["quantization_parameters"].keys()
    for ours in interpreter._get_ops_details():
        assert ours.keys() == get_type_hints(OpDetails).keys()


def test_every_field_of_the_delegation_report_is_documented() -> None:
    documented = DelegationReport.__doc__ or ""
    rows = "Rows for every node and partition, and the cost of the last invoke."
    assert rows in documented
    for each in dataclasses.fields(DelegationReport):
        assert each.name in documented or each.name in ("device", "nodes", "partitions", "counters"), each.name


def test_records_are_columns_of_plain_values() -> None:
    report = DelegationReport.of(_interpreter())
    found = columns(report.nodes)
    assert found["op"] == [row.op for row in report.nodes]
    assert found["kernels"] == [[*row.kernels] for row in report.nodes]
    assert all(isinstance(text, str) and "FLOAT32" in text for text in found["outputs"][-1])
    assert columns(()) == {}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_records_become_a_data_frame(library: Any) -> None:
    pytest.importorskip(library)
    report = DelegationReport.of(_interpreter())
    for rows in ("nodes", "partitions", "kernels", "copies"):
        made = report.frame(rows, library)
        assert type(made).__module__.partition(".")[0] == library
        assert len(made) == len(getattr(report, rows))
    assert list(report.frame("nodes", library)["op"]) == [row.op for row in report.nodes]
    assert list(quantized().quantization.frame(library=library)["op"])
    same = diff_models(*[write(classifier())] * 2)
    assert list(same.frame(library=library)["relative"]) == [0.0] * len(same.layers)


def test_without_a_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        frame(())
    with pytest.raises(MissingExtra, match="pip install polars"):
        frame((), "polars")

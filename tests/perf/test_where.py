"""``litecl where``: kinds of nodes, the table of runtimes' results, and its verdicts on a model."""

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.conformance import tflite_micro, vela
from litecl.conformance.runtimes import Suspect, suspect
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.unary import NEG
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from litecl.perf.peers import PEERS
from litecl.verify.catalogue import named_cases
from litecl.where import edgetpu, page, places, specimens, table
from litecl.where.kinds import Kind, kind_of, type_of
from litecl.where.making import observed
from litecl.where.observe import observe
from litecl.where.seen import Seen, model_of
from litecl.where.table import (
    DIFFERS,
    LEFT,
    PLACED,
    REFUSES,
    ROUNDS,
    RUNS,
    SAME,
    UNKNOWN,
    Record,
    Runtime,
    Table,
    recorded,
    verdict,
)
from support.build import Graph, model, randn
from support.command import RNG, data, failure, text

ROOT = Path(__file__).resolve().parents[2]
_SEEN = Seen("case", "ADD | float32[1] | float32[1] | ", 2, numbers=5000)

_ON_NPU, _ON_CPU = replace(_SEEN, npu=True), replace(_SEEN, npu=False, refused="Unsupported opType")


def _two(shape: tuple[int, ...], other: tuple[int, ...], function: ActivationFunctionType) -> Model:
    g = Graph()
    x, y = g.input(shape), g.input(other)
    return model(g.build(g.op(NEG, [g.op(ADD, [x, y], AddOptions(function))], NoOptions())))


def _kind(built: Model) -> Kind:
    graph = built.subgraphs[0]
    return kind_of(built, graph, graph.nodes[0])


def test_kinds_tell_apart_what_runtimes_do() -> None:
    none, relu = ActivationFunctionType.NONE, ActivationFunctionType.RELU
    one = _kind(_two((2, 3), (2, 3), none))
    assert one == _kind(_two((7, 5), (7, 5), none))  # sizes are alike
    others = [
        _two((2, 3), (2, 3), relu),
        _two((1, 3), (1, 3), none),
        _two((2, 3), (3,), none),
        _two((2, 3), (1,), none),
    ]
    assert len({one, *map(_kind, others)}) == 5


@pytest.mark.parametrize(
    ("option", "is_like_none"), [((1, 12), True), ((-1, 12), True), ((12, 1), False), ((12,), False)]
)
def test_the_new_shape_of_a_reshape_counts_where_its_operand_has_another(
    option: tuple[int, ...], is_like_none: bool
) -> None:
    """OpenVINO obeys the option, other runtimes the operand."""

    def kind(new_shape: tuple[int, ...]) -> Kind:
        g = Graph()
        shape = g.const(np.array([1, 12], np.int32))
        return _kind(model(g.build(g.op(RESHAPE, [g.input((1, 2, 2, 3)), shape], ReshapeOptions(new_shape)))))

    assert (kind(option) == kind(())) is is_like_none
    known = table.shipped()
    statuses = {known.verdict(name, kind(option), 1).status for name in known.runtimes}
    assert statuses == ({SAME, LEFT} if is_like_none else {UNKNOWN})  # Vela leaves floats to the CPU


def test_every_case_has_a_kind_that_can_be_read_back() -> None:
    for case in named_cases().values():
        kind = _kind(case.model())
        assert Kind.parse(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("float32[4]", "float32"),
        ("int8**0=[4]", "int8**"),
        ("int16*lp[2b]~", "int16*"),
        ("int4*#=[2]", "int4*#"),
        ("-", "-"),
    ],
)
def test_types_of_operands(text: str, type_: str) -> None:
    assert type_of(text) == type_


def _suspect(load: Callable[[bytes], Interpreter]) -> Suspect:
    return Suspect("planted", "planted", "1", load)  # type: ignore[arg-type]


class _Off(Interpreter):
    """Adds a step to every result."""

    def get_tensor(self, tensor_index: int, *args: object) -> Array:
        value = np.array(super().get_tensor(tensor_index))
        return value + value.dtype.type(1)


class _Unsteady(Interpreter):
    """Every instance has other results."""

    instances = itertools.count()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._number = next(self.instances)

    def get_tensor(self, tensor_index: int, *args: object) -> Array:
        value = np.array(super().get_tensor(tensor_index))
        return value + value.dtype.type(self._number)


class _Refusing(Interpreter):
    def allocate_tensors(self) -> None:
        raise RuntimeError("no kernel\nfor this")


def test_what_a_runtime_does_is_seen() -> None:
    specimen = specimens.of_case("ADD/" + next(n for n in named_cases() if n.startswith("ADD/")).partition("/")[2])
    right = observe(specimen, _suspect(lambda content: Interpreter(model_content=content)))
    off = observe(specimen, _suspect(lambda content: _Off(model_content=content)))
    refused = observe(specimen, _suspect(lambda content: _Refusing(model_content=content)))
    assert right is not None and right.refused is None and right.numbers and not right.differing and not right.wrong
    unsteady = observe(specimen, _suspect(lambda content: _Unsteady(model_content=content)))
    assert unsteady is not None and "change from run to run" in unsteady.wrong
    assert off is not None and off.differing == off.numbers and (off.steps or off.relative)
    assert refused is not None and refused.refused == "no kernel"


@pytest.mark.parametrize(
    ("record", "status", "steps", "relative"),
    [
        (Record().plus(_SEEN), SAME, 0, 0),
        (Record().plus(replace(_SEEN, differing=3, steps=1)), ROUNDS, 1, 0),
        (Record().plus(replace(_SEEN, differing=3, steps=5)), DIFFERS, 8, 0),
        (Record().plus(replace(_SEEN, differing=3, relative=2e-7)), ROUNDS, 0, 1e-4),
        (Record().plus(replace(_SEEN, differing=3, relative=2e-3)), DIFFERS, 0, 1e-2),
        (Record().plus(replace(_SEEN, differing=3, relative=0.5)), DIFFERS, 0, np.inf),
        (Record().plus(replace(_SEEN, wrong="another shape")), DIFFERS, np.inf, np.inf),
        (Record().plus(replace(_SEEN, numbers=10)), RUNS, np.inf, np.inf),
        (Record().plus(replace(_SEEN, special=True, differing=9, steps=99)), RUNS, np.inf, np.inf),
        (Record().plus(replace(_SEEN, refused="no")), REFUSES, np.inf, np.inf),
        (Record().plus(_SEEN, died=True), REFUSES, np.inf, np.inf),
        (Record().plus(_SEEN).plus(replace(_SEEN, refused="no")), UNKNOWN, np.inf, np.inf),
        (Record().plus(_ON_NPU), PLACED, np.inf, np.inf),
        (Record().plus(_ON_CPU), LEFT, np.inf, np.inf),
        (Record().plus(_ON_NPU).plus(_ON_CPU), UNKNOWN, np.inf, np.inf),
        (Record().plus(_ON_NPU).plus(_ON_NPU, died=True), UNKNOWN, np.inf, np.inf),
    ],
)
def test_verdicts(record: Record, status: str, steps: float, relative: float) -> None:
    judged = verdict(record, 2)
    assert (judged.status, judged.steps, judged.relative) == (status, steps, relative)


def test_a_version_above_those_that_ran_is_not_known() -> None:
    assert verdict(Record().plus(_SEEN), 3).status == UNKNOWN


@pytest.mark.parametrize(
    ("record", "op", "status"),
    [
        (Record().plus(_SEEN), "WHILE", RUNS),
        (Record().plus(_SEEN), "READ_VARIABLE", SAME),
        (Record().plus(replace(_SEEN, differing=3, relative=2e-3)), "WHILE", RUNS),
        (Record().plus(replace(_SEEN, differing=3, relative=2.0)), "WHILE", DIFFERS),
        (Record().plus(replace(_SEEN, wrong="another shape")), "WHILE", DIFFERS),
        (Record().plus(replace(_SEEN, refused="no translator for its body")), "WHILE", UNKNOWN),
        (Record().plus(replace(_SEEN, refused="No translator found for POW node.")), "WHILE", UNKNOWN),
        (Record().plus(replace(_SEEN, refused="No translator found for WHILE node.")), "WHILE", REFUSES),
        (Record().plus(replace(_SEEN, refused="Unexpected type: RESOURCE")), "READ_VARIABLE", REFUSES),
        (Record().plus(replace(_SEEN, refused="Unexpected type: RESOURCE")), "CALL_ONCE", UNKNOWN),
    ],
)
def test_verdicts_on_nodes_that_ran_with_others(record: Record, op: str, status: str) -> None:
    kind = Kind(op, ("resource",) if op == "READ_VARIABLE" else (), (), ())
    runtime = Runtime("r", "r", "1", "", "", 1)
    assert Table().with_runtime(runtime, {str(kind): record}).verdict("r", kind, 1).status == status


def test_loops_are_alike_by_their_types_and_how_they_hand_values_on() -> None:
    kinds = {name: str(specimens.of_case(f"WHILE/{name}").kind) for name in ("counted", "nested", "swapped variables")}
    types = "WHILE | float32 int32 | float32 int32 | "
    assert kinds == {"counted": types, "nested": f"{types}nested", "swapped variables": f"{types}overwritten"}


def test_a_loop_runs_if_the_nodes_in_it_do() -> None:
    built = specimens.of_case("WHILE/counted").model
    kinds = [str(kind_of(built, graph, node)) for graph in built.subgraphs for node in graph.nodes]
    runtime = Runtime("r", "r", "1", "", "", 1)
    for known, status in ((kinds, RUNS), (kinds[:-1], UNKNOWN)):
        table_ = Table().with_runtime(runtime, recorded((replace(_SEEN, kind=kind), False) for kind in known))
        assert places.where(built, table_, ["r"])[0].verdicts["r"].status == status


def test_nodes_of_subgraphs_are_cut_out() -> None:
    content = write(specimens.of_case("WHILE/counted").model)
    cut = [*specimens.of_model(content, "a")]
    assert [(s.name, s.node.op.name) for s in cut] == [
        ("a#0", "WHILE"), ("a#1/0", "LESS"), ("a#2/0", "ADD"), ("a#2/1", "ADD"), ("a#2/2", "TANH")
    ]  # fmt: skip
    assert {model_of(s.name) for s in cut} == {"a"}
    assert len([*specimens.draws(cut[0], 3)]) == 1  # other inputs may never end the loop


@pytest.mark.parametrize("op", ["CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"])
def test_variables_are_tried_together(op: str) -> None:
    specimen = specimens.of_case(f"{op}/set once, INT8")
    assert specimen.node.op.name == op
    off = observe(specimen, _suspect(lambda content: _Off(model_content=content)))
    right = observe(specimen, _suspect(lambda content: Interpreter(model_content=content)))
    assert right is not None and right.numbers >= table.FEWEST and not right.differing
    assert off is not None and off.differing == off.numbers


def test_no_kind_is_the_same_where_another_of_its_types_rounds() -> None:
    runtime = Runtime("r", "r", "1", "", "", 1)
    same, rounds = "ADD | int8*[1] | int8*[1] | a=1", "ADD | int8*[2b] | int8*[2b] | a=2"
    other = "ADD | int16*[1] | int16*[1] | a=1"
    seen = [replace(_SEEN, kind=same), replace(_SEEN, kind=rounds, differing=1, steps=1), replace(_SEEN, kind=other)]
    known = Table().with_runtime(runtime, recorded((one, False) for one in seen))
    assert [known.verdict("r", Kind.parse(kind), 1).status for kind in (same, rounds, other)] == [ROUNDS, ROUNDS, SAME]
    limited = known.verdict("r", Kind.parse(same), 1)
    assert (limited.steps, limited.relative, str(limited)) == (1, 0, "rounds, 1 step")


def test_floats_that_are_quantized_may_differ_by_a_step() -> None:
    runtime = Runtime("r", "r", "1", "", "", 1)
    kinds = [f"CONV_2D | {x}[4] {w}=[4] | float32[4] | " for x, w in (("float32", "int8**0"), ("float32", "float32"))]
    seen = [(replace(_SEEN, kind=kind, differing=1, relative=1e-7), False) for kind in kinds]
    known = Table().with_runtime(runtime, recorded(seen))
    assert [str(known.verdict("r", Kind.parse(kind), 1)) for kind in kinds] == ["rounds, 1e-2", "rounds, 1e-4"]


def test_complex_numbers_that_a_model_cannot_return_may_be_used_within() -> None:
    """OpenVINO refuses RFFT2D and COMPLEX_ABS alone, and runs them together."""
    kinds = ["RFFT2D | float32[2] int32=[1] | complex64[2] | ", "ABS | float32[2] | float32[2] | "]
    seen = [(replace(_SEEN, kind=kind, refused="no"), False) for kind in kinds]
    known = Table().with_runtime(Runtime("r", "r", "1", "", "", 1), recorded(seen))
    assert [known.verdict("r", Kind.parse(kind), 1).status for kind in kinds] == [UNKNOWN, REFUSES]


def test_an_operator_that_a_runtime_lacks_is_refused_of_every_kind() -> None:
    lacks = "Didn't find op for builtin opcode 'TILE'"
    kinds = {"TILE | a[1] | a[1] | ": lacks, "TILE | b[1] | b[1] | ": lacks, "FILL | a[1] | a[1] | ": "no type a"}
    seen = [(replace(_SEEN, kind=kind, refused=message), False) for kind, message in kinds.items()]
    known = Table().with_runtime(Runtime("r", "r", "1", "", "", 1), recorded(seen))
    other = [Kind.parse(f"{op} | c[1] | c[1] | ") for op in ("TILE", "FILL", "ADD")]
    assert [known.verdict("r", kind, 1).status for kind in other] == [REFUSES, UNKNOWN, UNKNOWN]
    ran = known.with_runtime(known.runtimes["r"], recorded([*seen, (replace(_SEEN, kind=str(other[0])), False)]))
    assert ran.verdict("r", Kind.parse("TILE | d[1] | d[1] | "), 1).status == UNKNOWN


def test_a_table_is_written_and_read(tmp_path: Path) -> None:
    runtime = Runtime("r", "package", "1", "2026-11-29", "a processor", 2)
    refused = replace(_SEEN, name="folder/a.tflite#3", kind="NEG | int8[1] | int8[1] | ", refused="no kernel")
    seen = [_SEEN, refused, replace(_SEEN, name="b.tflite#0")]
    known = Table().with_runtime(runtime, recorded((one, False) for one in seen))
    table.write(known, path := tmp_path / "table.json")
    assert table.read(path) == known
    assert known.kinds[refused.kind]["r"].nodes == (refused.name,)
    assert known.models("r") == ["b.tflite", "folder/a.tflite"]
    assert table.read(path).with_runtime(runtime, {}).kinds == {}
    for other in (b'{"kind": "other"}', b"PK\xff\x00", b"", b"[" * 100_000):
        path.write_bytes(other)
        with pytest.raises(ModelError, match="expected a table of litecl where"):
            table.read(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe := tmp_path / "pipe.json")
        with pytest.raises(OSError, match="regular file"):
            table.read(pipe)


def test_places_say_what_to_change() -> None:
    built = _two((2, 3), (2, 3), ActivationFunctionType.TANH)
    kind = _kind(built)
    plain = replace(kind, options=tuple(o.replace("TANH", "NONE") for o in kind.options))
    seen = [replace(_SEEN, kind=str(kind), refused="no TANH"), replace(_SEEN, kind=str(plain))]
    known = Table().with_runtime(Runtime("r", "r", "1", "", "", 2), recorded((one, False) for one in seen))
    first, second = places.where(built, known, ["r"])
    assert (first.verdicts["r"].status, first.verdicts["r"].reason) == (REFUSES, "no TANH")
    assert first.changes == {"r": ("fused_activation_function=NONE",)}
    assert (second.verdicts["r"].status, second.changes) == (UNKNOWN, {})


def test_a_compiler_may_compute_what_follows_from_sizes() -> None:
    g = Graph()
    x = g.input((2, 3))
    built = model(
        g.build(g.op(NEG, [g.op(SHAPE, [x], ShapeOptions(TensorType.INT32))], NoOptions()), g.op(NEG, [x], NoOptions()))
    )
    kinds = [str(kind_of(built, built.subgraphs[0], node)) for node in built.subgraphs[0].nodes]
    seen = [replace(_ON_CPU, kind=kind) for kind in kinds]
    known = Table().with_runtime(Runtime("r", "r", "1", "", "", 3), recorded((one, False) for one in seen))
    assert [place.verdicts["r"].status for place in places.where(built, known, ["r"])] == [UNKNOWN, UNKNOWN, LEFT]


@pytest.mark.parametrize(
    ("message", "status"), [("not static", UNKNOWN), ("No translator found for MUL node.", REFUSES)]
)
def test_a_runtime_may_know_an_operand_that_follows_from_constants(message: str, status: str) -> None:
    g = Graph()
    x, weights = g.input((2, 3)), g.op(NEG, [g.const(randn(RNG, 2, 3))], NoOptions())
    built = model(g.build(g.op(MUL, [x, weights], MulOptions())))
    seen = replace(_SEEN, kind=str(kind_of(built, built.subgraphs[0], built.subgraphs[0].nodes[1])), refused=message)
    known = Table().with_runtime(Runtime("r", "r", "1", "", "", 1), recorded([(seen, False)]))
    assert places.where(built, known, ["r"])[1].verdicts["r"].status == status


def test_nodes_are_cut_out_of_a_model() -> None:
    built = _two((2, 3), (3,), ActivationFunctionType.NONE)
    first, second = specimens.of_model(write(built), "a")
    assert [s.graph.nodes[0].op.name for s in (first, second)] == ["ADD", "NEG"]
    np.testing.assert_array_equal(second.feeds[0], first.feeds[0] + first.feeds[1])
    assert len(specimens.varied([first, second, first])) == 2


def test_a_worker_goes_on_after_a_refusal(tmp_path: Path) -> None:
    cut = [*specimens.of_model(write(_two((2, 3), (3,), ActivationFunctionType.NONE)), "a")]
    seen = observed("litecl", specimens.save(cut, tmp_path), 60, lambda: None)
    assert [(one.name, died) for one, died in seen] == [("a#0", False), ("a#1", False)]
    with pytest.raises(LiteclError):
        observed("no_such_runtime", specimens.save(cut, tmp_path), 60, lambda: None)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = Graph()
    x = g.input((2, 3))
    (path := tmp_path / "model.tflite").write_bytes(
        write(model(g.build(g.op(MUL, [x, g.const(randn(RNG, 2, 3))], MulOptions()))))
    )
    answer = data(capsys, "where", path, "--runtime", "tflite_micro", "--runtime", "litert")
    assert [r["name"] for r in answer["runtimes"]] == ["tflite_micro", "litert"]
    assert answer["nodes"][0]["op"] == "MUL" and {*answer["nodes"][0]["runtimes"]} == {"tflite_micro", "litert"}
    assert "nodes by runtime" in text(capsys, "where", path)
    assert "nothing to measure with: edgetpu_compiler" in text(
        capsys, "where", path, "--runtime", "edgetpu", "--measure"
    )
    assert "expected one of litert" in failure(capsys, "where", path, "--runtime", "other")
    assert "expected --table FILE" in failure(capsys, "verify", "--models", path)


def test_measuring_runs_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert")
    (path := tmp_path / "m.tflite").write_bytes(write(_two((2, 3), (2, 3), ActivationFunctionType.TANH)))
    (one,) = data(capsys, "where", path, "--runtime", "litert-reference", "--measure")["measured"]
    (output,) = one["outputs"].values()
    assert one["refused"] is None and output["differing"] == 6  # LiteRT ignores a fused TANH
    assert output["relative"] > 0.01


def test_litecl_has_the_reference_bits_of_integers() -> None:
    """Its floats round, FLOAT16 by a step; only floats that it quantizes differ, as LiteRT's default does."""
    rows = table.shipped().kinds.items()
    records = {kind: row["litecl"] for kind, row in rows if "litecl" in row and not Kind.parse(kind).is_hybrid}
    assert len(records) > 3000
    assert not [kind for kind, r in records.items() if r.refused or r.died or r.wrong or r.steps or r.relative > 1e-3]


def test_the_page_is_up_to_date() -> None:
    expected = page.markdown(table.shipped())
    assert (ROOT / "docs/runtimes.md").read_text() == expected, "python -m litecl.where.page docs/runtimes.md"


def test_tflite_micro_says_why_it_refuses() -> None:
    pytest.importorskip("tflite_micro", reason="needs tflite-micro: pip install tflite-micro")
    specimen = specimens.of_case(next(name for name in named_cases() if name.startswith("UNIQUE/")))
    with pytest.raises(LiteclError, match="UNIQUE"):
        tflite_micro.load(write(specimen.model)).allocate_tensors()


def test_convert_checks_for_a_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert")
    built = _two((2, 3), (2, 3), ActivationFunctionType.NONE)
    (source := tmp_path / "a.tflite").write_bytes(write(built))
    out = tmp_path / "b.tflite"
    check = data(capsys, "convert", source, "-o", out, "--quantize", "float16", "--check", "litert")["check"]
    assert [one["refused"] for one in check["measured"]] == [None]
    assert len(read(out.read_bytes()).subgraphs[0].nodes) == 2


@pytest.mark.parametrize(
    ("case", "status", "reason"),
    [
        ("CONV_2D/INT8 x INT8, 1x1, stride 2", PLACED, ""),
        ("CONV_2D/INT8 x INT8, dilation 2 by 3", LEFT, "the same dilation"),
        ("CONV_2D/INT8 x INT8, 1x1", LEFT, "three dimensions"),
        ("AVERAGE_POOL_2D/INT8, RELU6", LEFT, "no fused activation"),
        ("CONCATENATION/quantized INT8", PLACED, ""),
        ("FULLY_CONNECTED/INT8, 1 x 17 x 33", PLACED, ""),
        ("FULLY_CONNECTED/INT8, 3 x 17 x 33", LEFT, "an output of one dimension"),
        ("MEAN/INT8 axes (1, 2)", LEFT, "a multiple of 4"),
        ("PAD/quantized INT8", PLACED, ""),
        ("PACK/quantized INT8", UNKNOWN, "no new first axis"),
        ("PRELU/INT8 one scale", LEFT, "one alpha"),
        ("REDUCE_MAX/INT8 axes (0,)", UNKNOWN, "axes without the batch"),
        ("RESHAPE/quantized INT8", UNKNOWN, "sizes that it maps"),
        ("SOFTMAX/INT8 to INT8 0.05 1.0 (20, 7)", LEFT, "one dimension"),
        ("SQUEEZE/quantized INT8", LEFT, "in front"),
        ("STRIDED_SLICE/quantized INT8", PLACED, ""),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM/batch first, projection", PLACED, ""),
        ("ADD/INT8 large", PLACED, ""),
        ("ADD/131", LEFT, "8 bits"),
        ("ARG_MAX/equal elements", LEFT, "no ARG_MAX"),
        ("TRANSPOSE/quantized INT8", UNKNOWN, "only an early form is known"),
    ],
)
def test_the_edge_tpu_by_its_list(case: str, status: str, reason: str) -> None:
    graph = specimens.of_case(case).graph
    answer = edgetpu.verdict(graph, graph.nodes[0])
    assert (answer.status, reason in answer.reason) == (status, True), answer


@pytest.mark.parametrize(
    ("case", "change", "status"),
    [
        ("CONV_2D/INT8 x INT8, 1x1, stride 2", {"shape_signature": (-1, 5, 4, 3)}, LEFT),
        ("CONCATENATION/quantized INT8", {"data": np.int8([[7, 7, 7]])}, LEFT),
    ],
)
def test_the_edge_tpu_and_what_is_fixed(case: str, change: dict[str, Any], status: str) -> None:
    graph = specimens.of_case(case).graph
    first = graph.nodes[0].inputs[0]
    tensors = tuple(replace(spec, **change) if t == first else spec for t, spec in enumerate(graph.tensors))
    assert edgetpu.verdict(replace(graph, tensors=tensors), graph.nodes[0]).status == status


def test_every_limit_of_the_edge_tpu_is_used() -> None:
    assert {*edgetpu.LIMITS} == {*edgetpu.OF_ALL, *(text for texts in edgetpu.OPERATORS.values() for text in texts)}


def test_vela_places_and_leaves_nodes() -> None:
    pytest.importorskip("ethosu", reason="needs Vela: pip install ethos-u-vela")
    cases = (
        "CONV_2D/INT8 x INT8, 1x1, stride 2",
        "UNIQUE/" + next(name for name in named_cases() if name.startswith("UNIQUE/")).partition("/")[2],
    )
    placed, left = (observe(specimens.of_case(case), suspect("vela")) for case in cases)
    assert placed is not None and placed.npu and placed.refused is None
    assert left is not None and left.npu is False and left.refused == "Unsupported opType"


def test_an_error_of_vela_without_words_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Vela:
        def main(self, arguments: list[str]) -> int:
            print("CPU operators = 0 (0.0%)\nNPU operators = 1 (100.0%)")
            raise AssertionError

    monkeypatch.setattr(vela, "module", Vela)
    with pytest.raises(LiteclError, match="vela: AssertionError"):
        vela.place(b"")


def test_a_compiler_runs_no_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ethosu", reason="needs Vela: pip install ethos-u-vela")
    assert "expected --table FILE" in failure(capsys, "verify", "--runtime", "vela", "--ops", "ABS", "--quick")
    (path := tmp_path / "m.tflite").write_bytes(write(specimens.of_case("CONV_2D/INT8 x INT8, 1x1, stride 2").model))
    answer = data(capsys, "where", path, "--runtime", "vela", "--runtime", "edgetpu", "--measure")
    assert {name: one["status"] for name, one in answer["nodes"][0]["runtimes"].items()} == {
        "vela": PLACED,
        "edgetpu": PLACED,
    }
    compiled, listed = answer["measured"]
    assert (compiled["runtime"], compiled["placed"]) == ("vela", "1 operator on the NPU")
    assert (listed["runtime"], listed["installed"]) == ("edgetpu", False)


@pytest.mark.nightly
def test_onnx_runtime_takes_scalars() -> None:
    for package in PEERS["onnxruntime"].packages:
        pytest.importorskip(package, reason=f"needs {package}: pip install {package}")
    ((seen, _),) = observed("onnxruntime", ["ABS/rank 0"], 120, lambda: None)
    assert seen.refused is None and not seen.wrong


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("runtime", "package"),
    [("tflite_micro", "tflite-micro"), ("openvino", "openvino"), ("onnxruntime", "tf2onnx")],
)
def test_other_runtimes_run_and_refuse_cases(runtime: str, package: str) -> None:
    pytest.importorskip(package.replace("-", "_"), reason=f"needs {package}: pip install {package}")
    runs = next(name for name, case in named_cases().items() if case.op.name == "RELU" and case.inputs[0].dtype == "f4")
    refused = next(name for name in named_cases() if name.startswith("STABLEHLO_RNG_BIT_GENERATOR/"))
    (ran, _), (stopped, died) = observed(runtime, [runs, refused], 120, lambda: None)
    assert ran.refused is None and ran.numbers and not ran.steps and ran.relative < 1e-6
    assert died or stopped.refused

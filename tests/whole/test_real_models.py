"""Real models that nobody here wrote, on the interpreter and on the device, against ai_edge_litert.

Models of floats are compared with LiteRT as a user gets it. Quantized ones run on the interpreter and are compared with
LiteRT's reference kernels, in every tensor that a node computes: integers must be equal.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType
from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate, DelegationReport
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Node
from support import oracle
from support.shared import RealModel, invoked, needs_shared, rows

pytestmark = needs_shared

FLOAT_KINDS = ("float32", "float16-weights")
MODELS = invoked(*FLOAT_KINDS)
QUANTIZED = invoked(*sorted({row["kind"] for row in rows()} - set(FLOAT_KINDS)))
INTERPRETER, DEVICE = 1e-5, 1e-4

# Models whose outputs float32 does not determine to INTERPRETER, with the bound that is used instead.
ILL_CONDITIONED = {
    # Logits reach 1e3 and end in a sigmoid. Evaluated in float64, LiteRT is 3e-5 from the truth, the interpreter 4e-6.
    "selfie_segmenter": 1e-4,
}

# Models for which LiteRT's own kernels are compared, not those of XNNPACK that it puts before them.
WITHOUT_XNNPACK = (
    "qwen_fc_blockwise_quantized",  # XNNPACK rounds the activations in another way: 1.3e-3 from LiteRT's kernels
)

# Inputs that are made smaller, because LiteRT's reference kernels would take minutes for 62 G multiplications.
SMALLER = {"edsr_f32b5": (1, 24, 40, 3)}

# Operators of which LiteRT has reference kernels under an older version only, of the same meaning.
OLDER = {"DEPTH_TO_SPACE": 1}

# Whole float networks that the device must claim as one partition.
ONE_PARTITION = (
    "mlcommons-tiny/ad01_fp32",
    "mlcommons-tiny/pretrainedResnet.",
    "mlcommons-tiny/vww_96_float",
    "trained_lstm",
    "conv_fc_mnist.",
    "mobilenet_v1_0.25_224_1_default_1",
    "planestrike",
    "face_detection_front",
    "face_landmark",
    "mnist_resnet_f",
    "fizzbuzz",
    "iris",
    "keypoint_classifier",
    "portrait_segmentation",
    "DTLN/model_1",
    "selfie_segmenter",
)


@dataclass(frozen=True)
class Row:
    """One line of the table that this module prints."""

    model: str
    interpreter: float
    device: float
    report: DelegationReport


_rows: list[Row] = []
_quantized: list[tuple[str, str, int, float]] = []


@pytest.fixture(scope="module", autouse=True)
def table() -> object:
    """Print the measurements after the module's tests, and the models that weren't run, with LiteRT's reason."""
    yield
    exact = Table("quantized model", "kind", "tensors", "largest difference, against the reference kernels")
    for name, kind, count, difference in _quantized:
        exact.add_row(name, kind, str(count), f"{difference:.1e}" if difference else "equal")
    for row in rows():
        if row["litert_invokes"] != "True" and row["kind"] not in FLOAT_KINDS:
            exact.add_row(row["file"], row["kind"], "", f"not run, since LiteRT does not: {row['litert_note'][:100]}")
    Console(width=200).print(exact)
    table = Table("model", "nodes", "claimed", "partitions", "interpreter", "device", "on the CPU because")
    for row in _rows:
        reasons = sorted({f"{n.op}: {n.reason}" for n in row.report.nodes if not n.claimed})
        table.add_row(
            row.model,
            str(len(row.report.nodes)),
            str(row.report.claimed),
            str(len(row.report.partitions)),
            f"{row.interpreter:.1e}",
            f"{row.device:.1e}",
            "\n".join(reasons),
        )
    Console(width=200).print(table)


def _but_huge(models: Sequence[RealModel]) -> list[Any]:
    """Return models as parameters; convolutions of gigabytes take some ten seconds each."""
    return [pytest.param(model, marks=pytest.mark.nightly if "huge_im2col" in model.file else ()) for model in models]


@pytest.mark.parametrize("model", _but_huge(MODELS), ids=lambda m: Path(m.file).name)
def test_outputs_equal_litert(model: RealModel) -> None:
    plain = Interpreter(str(model.path))
    feeds = [_feed(detail, model) for detail in plain.get_input_details()]
    expected = oracle.run(model.path.read_bytes(), feeds, _resolver(model))
    delegated = Interpreter(str(model.path), delegates=[CLDelegate(dynamic_range="reference")])
    interpreter = _largest_difference(_run(plain, feeds), expected)
    device = _largest_difference(_run(delegated, feeds), expected)
    report = delegated.delegation_report()
    _rows.append(Row(model.file, interpreter, device, report))
    assert interpreter <= next((bound for name, bound in ILL_CONDITIONED.items() if name in model.file), INTERPRETER)
    assert device <= DEVICE
    assert not report.failures
    if any(name in model.file for name in ONE_PARTITION):
        assert (report.claimed, len(report.partitions)) == (len(report.nodes), 1), str(report)


@pytest.mark.parametrize("model", QUANTIZED, ids=lambda m: Path(m.file).name)
def test_quantized_outputs_equal_the_reference_kernels(model: RealModel) -> None:
    source = _with_older_versions(read(model.path.read_bytes()))
    interpreter = Interpreter(source, experimental_preserve_all_tensors=True)
    shape = next((shape for name, shape in SMALLER.items() if name in model.file), None)
    details = interpreter.get_input_details()
    feeds = [_quantized_feed(detail | ({} if shape is None else {"shape": shape}), model) for detail in details]
    tensors = _compared(source)
    expected = oracle.run_to(write(source), feeds, tensors)
    _run(interpreter, feeds)
    difference = _largest_difference([interpreter.get_tensor(tensor) for tensor in tensors], expected)
    _quantized.append((model.file, model.kind, len(tensors), difference))
    assert difference <= INTERPRETER


def _compared(model: Model) -> list[int]:
    """Return the tensors to compare: all that nodes compute, but only outputs for models with resource variables.

    Such models have tensors whose shapes LiteRT learns only while running, and reading them crashes it.
    """
    graph = model.subgraphs[0]
    if any(node.op.name == "VAR_HANDLE" for node in graph.nodes):
        return list(graph.outputs)
    return [tensor for node in graph.nodes for tensor in node.outputs]


def _with_older_versions(model: Model) -> Model:
    def older(nodes: Sequence[Node]) -> tuple[Node, ...]:
        return tuple(replace(node, version=OLDER.get(node.op.name, node.version)) for node in nodes)

    return replace(model, subgraphs=tuple(replace(graph, nodes=older(graph.nodes)) for graph in model.subgraphs))


def _quantized_feed(spec: dict[str, object], model: RealModel) -> np.ndarray:
    """Integers of the whole range of the type, or of its upper half where the operator needs positive numbers."""
    dtype = np.dtype(spec["dtype"])
    scale, zero_point = spec["quantization"]
    if dtype.kind not in "iu" or not scale:
        return _feed(spec, model)
    low = zero_point + 1 if "rsqrt" in model.file else np.iinfo(dtype).min
    rng = np.random.default_rng(int(spec["index"]))
    return rng.integers(low, np.iinfo(dtype).max + 1, _shape(spec, model)).astype(dtype)


def _shape(spec: dict[str, object], model: RealModel) -> list[int]:
    """The shape of an input; open dimensions take the size at which LiteRT was seen to run."""
    size = int(found.group(1)) if (found := re.search(r"mode r(\d+)", model.note)) else None
    return [size if size and s < 0 else d for d, s in zip(spec["shape"], spec["shape_signature"], strict=True)]


def _resolver(model: RealModel) -> OpResolverType:
    """Return LiteRT's default resolver, except for models on which its default delegate fails."""
    own = "mode n" in model.note or any(name in model.file for name in WITHOUT_XNNPACK)
    return oracle.WITH_OPTIMISED_KERNELS if own else OpResolverType.BUILTIN


def _feed(spec: dict[str, object], model: RealModel) -> np.ndarray:
    """Random values of a type and shape."""
    rng = np.random.default_rng(int(spec["index"]))  # inputs of one shape must not be equal
    shape = _shape(spec, model)
    dtype = np.dtype(spec["dtype"])
    if dtype.kind in "SO":
        return np.full(shape, b"text", np.object_)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if "while_op_with_forwarding_input" in model.file and dtype.kind == "i":
        return np.ones(shape, dtype)  # after a second trip LiteRT cannot read back the string that it forwarded
    if dtype.kind in "iu":
        return rng.integers(1, 3, shape).astype(dtype)
    values = rng.standard_normal(shape, np.float32)
    return np.abs(values) if "positive" in model.note and "mode p" in model.note else values


def _run(interpreter: Interpreter, feeds: list[np.ndarray]) -> list[np.ndarray]:
    details = interpreter.get_input_details()
    for detail, value in zip(details, feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _largest_difference(got: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Relative to each output's largest magnitude; infinite where types, shapes, integers or NaNs differ."""
    assert len(got) == len(expected)
    return max((_difference(a, b) for a, b in zip(got, expected, strict=True)), default=0.0)


def _difference(got: np.ndarray, expected: np.ndarray) -> float:
    if got.shape != expected.shape or (got.dtype != expected.dtype and got.dtype.kind != "O"):
        return float("inf")
    if got.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else float("inf")
    if not np.array_equal(np.isnan(got), np.isnan(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    scale = np.max(np.abs(expected[finite]), initial=1e-30)
    return float(np.max(np.abs(got[finite].astype(np.float64) - expected[finite]), initial=0.0) / scale)

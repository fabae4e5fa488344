"""Malformed files end in ModelError, which names the fault and its position."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import softmax
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError, ModelError, UnsupportedOp
from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, Subgraph, TensorSpec
from litecl.interpreter.options import CustomOptions, unknown_op
from litecl.interpreter.schema import TensorType
from support.shared import MODELS, needs_shared, rows

SOFTMAX_FILE = write(softmax.CASES[0].model())
SMALL_FILES = [row["file"] for row in rows() if int(row["bytes"]) < 6000][::4]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("operator_codes.0.builtin_code", 4000, "operator code 0: builtin operator 4000"),
        ("operator_codes.0.builtin_code", 118, "subgraph 0, operator 0: IF without IfOptions"),
        ("operator_codes.0.builtin_code", 32, "operator code 0: a custom operator without a custom code"),
        ("subgraphs", [], "no subgraph"),
        ("subgraphs.0.inputs", [7], "subgraph 0: input 7 out of range for 2 tensors"),
        ("subgraphs.0.inputs", [-1], "subgraph 0: input -1 out of range"),
        ("subgraphs.0.outputs", [2], "subgraph 0: output 2 out of range"),
        ("subgraphs.0.operators.0.opcode_index", 3, "subgraph 0, operator 0: operator code 3 out of range for 1"),
        ("subgraphs.0.operators.0.inputs", [9], "subgraph 0, operator 0: input 9 out of range for 2 tensors"),
        ("subgraphs.0.operators.0.outputs", [-2], "subgraph 0, operator 0: output -2 out of range"),
        ("subgraphs.0.operators.0.outputs", [0], "subgraph 0, operator 0: tensor 0 is both input and output"),
        ("subgraphs.0.operators.0.outputs", [1, 1], "tensor 1 is already written by operator 0"),
        ("subgraphs.0.inputs", [0, 1], "subgraph 0, operator 0: output tensor 1 is an input of the subgraph"),
        ("subgraphs.0.operators", [], "subgraph 0: output tensor 1 is never written"),
        ("subgraphs.0.inputs", [], "subgraph 0, operator 0: input tensor 0 has no value yet"),
        (
            "subgraphs.0.operators.0.builtin_options",
            Record("WhileOptions", cond_subgraph_index=1),
            "subgraph 0, operator 0: subgraph 1 out of range",
        ),
        ("subgraphs.0.operators.0.builtin_options", Record("CallOptions"), "subgraph 0 calls itself"),
        ("subgraphs.0.tensors.0.type", 77, "subgraph 0, tensor 0: element type 77 is not known"),
        ("subgraphs.0.tensors.0.shape", [-1, 3], "subgraph 0, tensor 0: negative dimension in shape"),
        ("subgraphs.0.tensors.0.shape", [2**31 - 1] * 3, "has more elements than memory can hold"),
        ("subgraphs.0.tensors.0.shape", [1] * 40, "rank 40"),
        ("subgraphs.0.tensors.0.shape_signature", [-3, 3], "dimension below -1"),
        ("subgraphs.0.tensors.0.buffer", 12, "subgraph 0, tensor 0: buffer 12 out of range for 1 buffers"),
        (
            "subgraphs.0.tensors.0.quantization",
            Record("QuantizationParameters", scale=[1, 2], zero_point=[0, 0, 0]),
            "2 scales and 3 zero points",
        ),
        (
            "subgraphs.0.tensors.0.quantization",
            Record("QuantizationParameters", scale=[1, 2], quantized_dimension=5),
            "quantized dimension 5 out of range for rank 2",
        ),
        ("subgraphs.0.tensors.0.sparsity", Record("SparsityParameters", traversal_order=[0, 0]), "sparsity"),
        ("buffers", [Record("Buffer", offset=5000, size=100)], "buffer 0: 100 bytes at 5000 reach past the end"),
        ("metadata", [Record("Metadata", name="m", buffer=9)], "metadata 0: buffer 9 out of range"),
        ("signature_defs", [Record("SignatureDef", subgraph_index=2)], "signature 0: subgraph 2 out of range"),
        (
            "signature_defs",
            [Record("SignatureDef", inputs=[Record("TensorMap", name="a", tensor_index=6)])],
            "signature 0: tensor of 'a' 6 out of range",
        ),
    ],
)
def test_contradictions_are_named(path: str, value: Any, message: str) -> None:
    """A number that points nowhere is refused, and the message says which."""
    root = decode(memoryview(SOFTMAX_FILE), "Model", b"TFL3")
    *parents, last = path.split(".")
    place: Any = root
    for step in parents:
        place = place[int(step)] if step.isdigit() else place.fields[step]
    place.fields[last] = value
    with pytest.raises(ModelError, match=message):
        read(bytes(encode(root, b"TFL3")))


def test_a_called_subgraph_must_take_what_it_is_given() -> None:
    """Callers and callees agree on the number of inputs and outputs."""
    root = decode(memoryview(SOFTMAX_FILE), "Model", b"TFL3")
    root.subgraphs.append(root.subgraphs[0])
    root.subgraphs[0] = Record(
        "SubGraph",
        tensors=root.subgraphs[0].tensors,
        inputs=[0],
        outputs=[1],
        operators=[
            Record(
                "Operator",
                inputs=[0],
                outputs=[1],
                builtin_options=Record("IfOptions", then_subgraph_index=1, else_subgraph_index=1),
            )
        ],
    )
    with pytest.raises(ModelError, match=r"subgraph 0, operator 0: subgraph 1, .* expected 0 and 1"):
        read(bytes(encode(root, b"TFL3")))


def test_a_constant_must_fill_its_shape() -> None:
    """A buffer of the wrong size names its tensor."""
    weights = TensorSpec(TensorType.FLOAT32, (3,), "w", np.zeros(3, np.float32))
    root = decode(memoryview(write(Model((Subgraph((weights,), (), (), ()),)))), "Model", b"TFL3")
    root.subgraphs[0].tensors[0].fields["shape"] = [4]
    with pytest.raises(ModelError, match=r"subgraph 0, tensor 0 \('w'\): buffer: expected 16 bytes .*, got 12"):
        read(bytes(encode(root, b"TFL3")))


def test_unknown_operators_are_read_and_refused_only_when_run() -> None:
    """The error names the operator, and for a custom one how to supply it."""
    with pytest.raises(UnsupportedOp, match=r"mine: .*custom_ops"):
        unknown_op("mine", custom=True).run(CustomOptions(), [])


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\x00" * 64, b"\xff" * 64], ids=["empty", "short", "zeros", "ones"])
def test_what_is_no_model(tmp_path: Path, content: bytes) -> None:
    """Bytes and files that hold something else are refused."""
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    for source in (content, path):
        with pytest.raises(ModelError):
            read(source)


@needs_shared
@pytest.mark.parametrize("file", SMALL_FILES)
def test_truncated_files(file: str) -> None:
    """A file cut anywhere is refused, or read where the cut took only padding."""
    content = (MODELS / file).read_bytes()
    for end in range(0, len(content), max(1, len(content) // 150)):
        _read_or_refuse(content[:end])


@needs_shared
@pytest.mark.parametrize("file", SMALL_FILES)
def test_mutated_files(file: str) -> None:
    """Bytes changed at random, and offsets set to extremes, never end in anything but a model or a ModelError."""
    content = np.frombuffer((MODELS / file).read_bytes(), np.uint8)
    rng = np.random.default_rng(17)
    extremes = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1, content.size], np.uint32).view(np.uint8).reshape(-1, 4)
    for _ in range(150):
        mutated = content.copy()
        mutated[rng.integers(0, content.size, 2)] = rng.integers(0, 256, 2)
        word = 4 * rng.integers(0, content.size // 4)
        mutated[word : word + 4] = rng.choice(extremes)
        _read_or_refuse(mutated.tobytes())


def _read_or_refuse(content: bytes) -> None:
    try:
        read(content)
    except ModelError:
        return


@needs_shared
@pytest.mark.parametrize("row", [r for r in rows() if "CRASH" in r["litert_note"]], ids=lambda r: Path(r["file"]).name)
def test_models_that_crash_litert(row: dict[str, str]) -> None:
    """They run, or are refused with a reason."""
    try:
        interpreter = Interpreter(str(MODELS / row["file"]))
        interpreter.allocate_tensors()
        interpreter.invoke()
    except LiteclError as error:
        assert str(error)

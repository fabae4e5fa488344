"""Converts ONNX files by onnx2tf, in a process of its own, and compares the result with ONNX Runtime.

onnx2tf's exit code says little: it is 0 for custom operators that nothing runs, and for attributes that it drops. So
the operators that it writes are read, and results compared. It also overwrites its source, and so gets a copy.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
import onnx

from litecl import comparison
from litecl.converter.records import Shapes, Source
from litecl.interpreter.errors import ConversionError, MissingExtra, brief
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import TensorType

_TIMEOUT_S = 1800
_INLINE = 1 << 30  # bytes of a file with its weights in it; protobuf allows 2 GiB
_OPEN_SIZES = (1, 3)  # of open dimensions, in turns
_RUNS = 2  # with each
_DOMAINS = ("", "ai.onnx")
# The roundings of nearest neighbours that onnx2tf 2.6.9 keeps, by coordinate_transformation_mode.
_ROUNDINGS = {
    "asymmetric": ("floor",),
    "half_pixel": ("round_prefer_floor", "round_prefer_ceil"),
}


@dataclass(frozen=True, eq=False)
class Loaded:
    """An ONNX file. doubts: what onnx2tf is known to compute otherwise, or not at all."""

    path: Path
    proto: Any
    doubts: Sequence[str]

    @property
    def inputs(self) -> dict[str, list[int | None]]:
        """The shapes of inputs by name; None for an open dimension."""
        constants = {each.name for each in self.proto.graph.initializer}
        return {each.name: _shape(each) for each in self.proto.graph.input if each.name not in constants}

    @property
    def outputs(self) -> list[str]:
        """The names of outputs, in order."""
        return [each.name for each in self.proto.graph.output]


def load(path: str | Path) -> Loaded:
    """Read an ONNX file. Raises ConversionError for one that the package onnx can't read."""
    try:
        proto = onnx.load(str(path))
    except Exception as error:  # of protobuf and of onnx, by the fault
        raise ConversionError(f"{path}: onnx does not load it: {brief(str(error))}") from error
    return Loaded(Path(path), proto, tuple(dict.fromkeys(_doubts(proto.graph))))


def model_of(loaded: Loaded, input_shapes: Shapes | None = None, timeout_s: float = _TIMEOUT_S) -> Model:
    """Return the model that onnx2tf writes. Inputs have ONNX's shapes; outputs of images may be channels last.

    Raises MissingExtra without onnx2tf, ConversionError if it fails, doesn't end, or writes operators of its own.
    """
    try:
        return _converted(loaded, input_shapes, timeout_s)
    except ConversionError as error:
        for doubt in loaded.doubts:
            error.add_note(doubt)
        raise


def source_of(loaded: Loaded, model: Model) -> Source | None:
    """Return the ONNX file as a function from the model's input names to its output names, run by ONNX Runtime; None
    if that is not installed. Raises ConversionError if ONNX Runtime can't load it.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal
    try:
        session = onnxruntime.InferenceSession(str(loaded.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ConversionError(f"{loaded.path}: ONNX Runtime does not load it: {brief(str(error))}") from error
    (signature,) = model.signatures
    renamed, outputs = _names([*signature.inputs], [*loaded.inputs]), _names([*signature.outputs], loaded.outputs)

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        results = session.run(
            [outputs[name] for name in signature.outputs], {renamed[name]: value for name, value in inputs.items()}
        )
        return dict(zip(signature.outputs, map(np.asarray, results), strict=True))

    return run


def compared(loaded: Loaded, model: Model, source: Source) -> tuple[Model, dict[str, float]]:
    """Return the model with ONNX's order of dimensions in its outputs, and each output's largest difference from ONNX
    Runtime's on random inputs, relative to its largest magnitude.
    """
    last: dict[str, int] = {}
    largest: dict[str, float] = {}
    runner = Interpreter(model).get_signature_runner()
    for seed, inputs in enumerate(_samples(loaded, runner.get_input_details())):
        try:
            wanted = source(inputs)
        except Exception as error:
            if seed < _RUNS:
                raise ConversionError(f"ONNX Runtime does not run it: {brief(str(error))}") from error
            break  # these open dimensions depend on each other
        results = runner(**inputs)
        for name, expected in wanted.items():
            apart = _apart(results[name], expected)
            moved = _apart(_first(results[name]), expected)
            last[name] = last.get(name, 0) + (moved < apart)
            largest[name] = max(largest.get(name, 0.0), min(apart, moved))
    return _channels_first(model, [name for name, count in last.items() if count]), largest


def by_shape(loaded: Loaded, model: Model) -> tuple[Model, list[str]]:
    """Return the model with ONNX's order of dimensions in its outputs, as far as their shapes tell it, and the names of
    outputs whose shapes don't.
    """
    (signature,) = model.signatures
    tensors = model.subgraphs[signature.subgraph].tensors
    last, unknown = [], []
    outputs = _names([*signature.outputs], loaded.outputs)
    values = {value.name: value for value in loaded.proto.graph.output}
    for name, tensor in signature.outputs.items():
        wanted, got = _shape(values[outputs[name]]), list(tensors[tensor].shape or ())
        if len(got) < 3 or len(got) != len(wanted):
            continue
        as_is, moved = _fits(got, wanted), _fits([got[0], got[-1], *got[1:-1]], wanted)
        if moved and not as_is:
            last.append(name)
        elif moved:
            unknown.append(name)
    return _channels_first(model, last), unknown


def _converted(loaded: Loaded, input_shapes: Shapes | None, timeout_s: float) -> Model:
    path = loaded.path
    with TemporaryDirectory() as folder:
        source, out = Path(folder, "model.onnx"), Path(folder, "out")
        large = loaded.proto.ByteSize() > _INLINE
        onnx.save(_sized(loaded, input_shapes or {}), str(source), save_as_external_data=large, location="weights.data")
        arguments = ["--input_onnx_file_path", str(source), "--output_folder_path", str(out)]
        arguments += ["--keep_shape_absolutely_input_names", *loaded.inputs] if loaded.inputs else []
        said = _run([*_command(), *arguments], Path(folder), timeout_s)
        written = out / "model_float32.tflite"
        if not written.exists():
            raise ConversionError(f"{path}: onnx2tf writes no .tflite file of it: {said}")
        model = read(written.read_bytes())
    nodes = [node for graph in model.subgraphs for node in graph.nodes]
    if own := sorted({node.op.name for node in nodes if node.op.custom}):
        raise ConversionError(f"{path}: onnx2tf makes custom operators that no runtime has: {', '.join(own)}")
    signatures = model.signatures
    if (
        len(signatures) != 1
        or len(signatures[0].inputs) != len(loaded.inputs)
        or len(signatures[0].outputs) != len(loaded.outputs)
    ):
        raise ConversionError(f"{path}: onnx2tf writes other inputs or outputs than the file has")
    return _from_zeros(model)


def _from_zeros(model: Model) -> Model:
    """Return the model with every state set to zeros at each invoke, as ONNX's recurrent layers begin.

    A variable tensor would carry over, so FILL writes it first (as in ``lower/lstm.py``).
    """
    return replace(model, subgraphs=tuple(map(_graph_from_zeros, model.subgraphs)))


def _graph_from_zeros(graph: Subgraph) -> Subgraph:
    written = {tensor for node in graph.nodes for tensor in node.outputs}
    tensors, fills = list(graph.tensors), list[Node]()
    for number, spec in enumerate(graph.tensors):
        if spec.is_variable and number not in written:
            shape = np.array(spec.static_shape, np.int32)
            tensors.append(TensorSpec(TensorType.INT32, shape.shape, f"{spec.name}/shape", shape))
            tensors.append(TensorSpec(spec.type, (), f"{spec.name}/zero", np.zeros((), spec.dtype)))
            fills.append(Node(FILL, (len(tensors) - 2, len(tensors) - 1), (number,), FILL.options()))
    return replace(graph, tensors=tuple(tensors), nodes=(*fills, *graph.nodes))


def _command() -> list[str]:
    """Return the command of onnx2tf: this environment's, or one on PATH. Raises MissingExtra if there is none."""
    if importlib.util.find_spec("onnx2tf") is not None:
        version = importlib.metadata.version("onnx2tf")
        if int(version.partition(".")[0]) >= 2:
            return [sys.executable, "-m", "onnx2tf"]
    elif (elsewhere := shutil.which("onnx2tf")) is not None:
        return [elsewhere]
    raise MissingExtra(
        "converting an ONNX model needs onnx2tf 2: pip install 'litecl[onnx]' on Python 3.12 or newer, or have its "
        "command on PATH (uv tool install onnx2tf)"
    )


def _run(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """Run onnx2tf; return the last line that it printed. Raises ConversionError if it doesn't end in time."""
    with TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise ConversionError(f"{command[0]}: {error.strerror}") from error
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ConversionError(f"onnx2tf did not end in {timeout_s:g} s") from error
        finally:
            if process.poll() is None:
                _end(process)
        log.seek(0)
        lines = log.read().decode(errors="replace").replace("\r", "\n").split("\n")
    return brief(next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {process.returncode}"))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill onnx2tf and the processes that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses a group that has just ended
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _names(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Return ONNX's names by onnx2tf's, which changes some (``x:0`` to ``x__0``) and keeps their order."""
    return {name: name for name in ours} if {*ours} == {*theirs} else dict(zip(ours, theirs, strict=True))


def _sized(loaded: Loaded, shapes: Shapes) -> Any:
    """Return the file's content with these sizes of open dimensions. Raises ConversionError if they don't fit it."""
    sized, known = onnx.ModelProto(), loaded.inputs
    sized.CopyFrom(loaded.proto)
    if unknown := {*shapes} - {*known}:
        raise ConversionError(f"input_shapes: there is no input {min(unknown)!r}; there are {sorted(known)}")
    for value in sized.graph.input:
        shape = shapes.get(value.name, known.get(value.name, ()))
        sizes = [None if size in (None, -1) else size for size in shape]
        of_input = known.get(value.name, ())
        if len(sizes) != len(of_input) or any(
            None not in (a, b) and a != b for a, b in zip(sizes, of_input, strict=True)
        ):
            raise ConversionError(
                f"input_shapes: {value.name!r} has the shape {of_input} (None: open), got {list(shape)}"
            )
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes, strict=False):
            if size is not None:
                dim.dim_value = size
    return sized


def _samples(loaded: Loaded, details: Mapping[str, Any]) -> Iterator[dict[str, Array]]:
    """Yield random inputs, with each size of open dimensions. Floats are standard normal, integers 0 or 1."""
    shapes = [detail["shape_signature"] for detail in details.values()]
    opened = any(-1 in shape for shape in shapes)
    for size in _OPEN_SIZES if opened else _OPEN_SIZES[:1]:
        for seed in range(_RUNS):
            rng = np.random.default_rng(seed)
            yield {
                name: _random(rng, [size if n == -1 else int(n) for n in shape], np.dtype(detail["dtype"]))
                for (name, detail), shape in zip(details.items(), shapes, strict=True)
            }


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def _apart(got: Array, expected: Array) -> float:
    apart = comparison.difference(got, expected, any_type=True)
    return np.inf if apart.wrong else apart.absolute / (apart.magnitude or 1.0)


def _first(x: Array) -> Array:
    """Return an array with its last dimension, of channels, second."""
    return np.moveaxis(x, -1, 1) if x.ndim > 2 else x


def _channels_first(model: Model, names: Sequence[str]) -> Model:
    """Return the model with a TRANSPOSE of these outputs."""
    (signature,) = model.signatures
    graph, outputs = model.subgraphs[signature.subgraph], dict(signature.outputs)
    for name in names:
        graph, outputs[name] = _transposed(graph, outputs[name], name)
    graphs = list(model.subgraphs)
    graphs[signature.subgraph] = graph
    return replace(model, subgraphs=tuple(graphs), signatures=(replace(signature, outputs=outputs),))


def _transposed(graph: Subgraph, tensor: int, name: str) -> tuple[Subgraph, int]:
    tensors, spec = list(graph.tensors), graph.tensors[tensor]
    rank = len(spec.static_shape)
    axes = [0, rank - 1, *range(1, rank - 1)]
    order, result = len(tensors), len(tensors) + 1
    tensors[tensor] = replace(spec, name=f"{spec.name}/channels_last")
    tensors.append(TensorSpec(TensorType.INT32, (rank,), f"{name}/order", np.array(axes, np.int32)))
    signature = spec.shape_signature
    tensors.append(
        replace(
            spec,
            shape=tuple(spec.static_shape[axis] for axis in axes),
            shape_signature=None if signature is None else tuple(signature[axis] for axis in axes),
        )
    )
    nodes = (*graph.nodes, Node(TRANSPOSE, (tensor, order), (result,), NoOptions()))
    outputs = tuple(result if each == tensor else each for each in graph.outputs)
    return replace(graph, tensors=tuple(tensors), nodes=nodes, outputs=outputs), result


def _shape(value: Any) -> list[int | None]:
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]


def _fits(shape: Sequence[int], declared: Sequence[int | None]) -> bool:
    return len(shape) == len(declared) and all(b is None or a == b for a, b in zip(shape, declared, strict=True))


def _doubts(graph: Any) -> Iterator[str]:
    """Yield what onnx2tf is known to drop or to refuse in a graph, and in those of its branches and loops."""
    for node in graph.node:
        name = f"{node.op_type} {node.name!r}" if node.name else node.op_type
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        if node.domain not in _DOMAINS:
            yield f"{name}: an operator of the domain {node.domain!r}"
        elif node.op_type in _RULES and (doubt := _RULES[node.op_type](node, attributes)):
            yield f"{name}: {doubt}"
        elif node.op_type.startswith("QLinear") or node.op_type.endswith("Integer"):
            yield f"{name}: onnx2tf computes it in floats, not in integers"
        for value in attributes.values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, onnx.GraphProto):
                    yield from _doubts(each)


def _resize(node: Any, attributes: Mapping[str, Any]) -> str | None:
    if attributes.get("antialias"):
        return "onnx2tf drops antialias"
    if attributes.get("mode", b"nearest") != b"nearest":
        return None
    coordinates = attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
    rounding = attributes.get("nearest_mode", b"round_prefer_floor").decode()
    if rounding in _ROUNDINGS.get(coordinates, ()):
        return None
    return f"onnx2tf rounds nearest neighbours otherwise than {rounding} of {coordinates}"


def _grid_sample(node: Any, attributes: Mapping[str, Any]) -> str | None:
    if attributes.get("mode") in (b"cubic", b"bicubic"):
        return "onnx2tf has no cubic samples"
    return "onnx2tf has no reflected borders" if attributes.get("padding_mode") == b"reflection" else None


def _lstm(node: Any, attributes: Mapping[str, Any]) -> str | None:
    return "onnx2tf has no peepholes" if len(node.input) > 7 and node.input[7] else None


_RULES: Mapping[str, Callable[[Any, Mapping[str, Any]], str | None]] = {
    "Resize": _resize,
    "GridSample": _grid_sample,
    "LSTM": _lstm,
}

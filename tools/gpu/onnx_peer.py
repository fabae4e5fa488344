"""ONNX Runtime as a peer on the same device: a model's graph of floats in ONNX, where its two packages are installed.

With the package ``onnxruntime-gpu`` it is the CUDA provider, which records the graph and replays it; else the CPU's.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph
from litecl.interpreter.kit.window import Window
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import binary, conv_2d, depthwise_conv_2d, pool_2d, reduce, unary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.schema import ActivationFunctionType

_OPSET, _IR_VERSION = 20, 9
_CUDA = "CUDAExecutionProvider"
_FIRST, _LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # an image with channels first, and last
_GATES, _RECURRENT, _BIASES = 1, 5, 12  # positions of an LSTM's operands: input, forget, cell, output
_ONNX_GATES = (0, 3, 1, 2)  # input, output, forget, cell


class OnnxModel:
    """A model of one subgraph in ONNX Runtime. Raises LiteclError where its packages are not installed, or an operator
    is not in the table.

    runs_on: "CUDA" or "CPU".
    """

    def __init__(self, content: bytes) -> None:
        self._ort = _package("onnxruntime")
        self._content = exported(content)
        cuda = _CUDA in self._ort.get_available_providers()
        self._session = self._on_cuda() if cuda else self._made("CPUExecutionProvider")
        # Without a driver the provider leaves everything to the CPU's.
        self.runs_on = "CUDA" if _CUDA in self._session.get_providers() else "CPU"
        self._names = [given.name for given in self._session.get_inputs()]

    def prepare(self, inputs: Sequence[Array]) -> None:
        """Upload the inputs."""
        if self.runs_on != "CUDA":
            self._feeds = dict(zip(self._names, inputs, strict=True))
            return
        value, self._binding = self._ort.OrtValue, self._session.io_binding()
        for name, array in zip(self._names, inputs, strict=True):
            self._binding.bind_ortvalue_input(name, value.ortvalue_from_numpy(array, "cuda", 0))
        for result in self._session.get_outputs():  # where the recorded graph finds them again
            made = value.ortvalue_from_shape_and_type(result.shape, np.float32, "cuda", 0)
            self._binding.bind_ortvalue_output(result.name, made)

    def run(self) -> list[Array]:
        """Return the outputs on the host."""
        if self.runs_on != "CUDA":
            return list(self._session.run(None, self._feeds))
        self._session.run_with_iobinding(self._binding)
        return list(self._binding.copy_outputs_to_cpu())

    def _on_cuda(self) -> Any:
        for more in ({"enable_cuda_graph": "1"}, {}):  # which a model with a node that only the CPU has cannot be
            with suppress(Exception):
                return self._made((_CUDA, {"use_tf32": "0", **more}))  # float32 it is
        raise LiteclError("in ONNX Runtime: its CUDA provider does not take the model")

    def _made(self, provider: Any) -> Any:
        return self._ort.InferenceSession(self._content, providers=[provider])


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LiteclError(f"comparing with ONNX Runtime needs the packages onnx and onnxruntime: {error}") from error


def exported(content: bytes) -> bytes:
    """Return a model as an ONNX file. Raises LiteclError for what is not in the table."""
    _package("onnx")
    subgraphs = read(content).subgraphs
    if len(subgraphs) != 1:
        raise LiteclError(f"in ONNX: expected one subgraph, got {len(subgraphs)}")
    unknown = {node.op.name for node in subgraphs[0].nodes if node.op not in _WRITERS}
    if unknown:
        raise LiteclError(f"in ONNX: expected operators of its table, got {', '.join(sorted(unknown))}")
    return _Writer(subgraphs[0]).written()


class _Writer:
    """Writes a graph, node by node. Tensors are named by their number, and what is between them by further ones."""

    def __init__(self, graph: Subgraph) -> None:
        self._onnx = importlib.import_module("onnx")
        self._graph, self._nodes = graph, list[Any]()
        self._constants: dict[str, Array] = {}
        self._made = len(graph.tensors)

    def written(self) -> bytes:
        """Return the file."""
        make, graph = self._onnx.helper, self._graph
        for node in graph.nodes:
            self._name(_WRITERS[node.op](self, node), node.outputs[0])
        ends = [[self._told(tensor) for tensor in tensors] for tensors in (graph.inputs, graph.outputs)]
        constants = [self._onnx.numpy_helper.from_array(x, name) for name, x in self._constants.items()]
        made = make.make_graph(self._nodes, "model", *ends, constants)
        opset = [make.make_opsetid("", _OPSET)]
        content: bytes = make.make_model(made, opset_imports=opset, ir_version=_IR_VERSION).SerializeToString()
        return content

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return self._graph.tensors[tensor].static_shape

    def data(self, tensor: int) -> Array:
        """Return the value of a constant. Raises LiteclError for any other tensor."""
        found = self._graph.tensors[tensor].data
        if found is None:
            raise LiteclError(f"in ONNX: expected tensor {tensor} to be a constant")
        return found

    def value(self, tensor: int) -> str:
        """Return the name of a tensor."""
        if self._graph.tensors[tensor].data is not None:
            self._constants[str(tensor)] = self.data(tensor)
        return str(tensor)

    def constant(self, value: Array) -> str:
        """Return the name of a new constant."""
        self._made += 1
        self._constants[str(self._made)] = np.ascontiguousarray(value)
        return str(self._made)

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of ONNX; return the name of its first result."""
        self._made += 1
        self._nodes.append(self._onnx.helper.make_node(op, inputs, [str(self._made)], **attributes))
        return str(self._made)

    def _name(self, found: str, tensor: int) -> None:
        self._nodes.append(self._onnx.helper.make_node("Identity", [found], [str(tensor)]))

    def _told(self, tensor: int) -> Any:
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(self._graph.tensors[tensor].dtype)
        return self._onnx.helper.make_tensor_value_info(str(tensor), kind, self.shape(tensor))


def _activated(w: _Writer, y: str, options: Any) -> str:
    function = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
    if function == ActivationFunctionType.NONE:
        return y
    if function == ActivationFunctionType.RELU:
        return w.add("Relu", y)
    if function == ActivationFunctionType.RELU6:
        return w.add("Clip", y, *(w.constant(np.array(bound, np.float32)) for bound in (0, 6)))
    raise LiteclError(f"in ONNX: expected RELU or RELU6, got {function.name}")


def _geometry(windows: Sequence[Window]) -> dict[str, list[int]]:
    pads = [w.before for w in windows] + [w.after for w in windows]
    return {"pads": pads, "strides": [w.stride for w in windows]}


def _conv(w: _Writer, node: Node) -> str:
    x, filter_, bias = (*node.inputs, ABSENT)[:3]
    depthwise = node.op is depthwise_conv_2d.DEPTHWISE_CONV_2D
    sizes = (depthwise_conv_2d if depthwise else conv_2d).windows(node.options, w.shape(x), w.shape(filter_))
    weights = np.transpose(w.data(filter_), (3, 0, 1, 2) if depthwise else _FIRST)
    more = [] if bias == ABSENT else [w.value(bias)]
    image, groups = w.add("Transpose", w.value(x), perm=_FIRST), w.shape(x)[3] // weights.shape[1]
    dilations = [window.dilation for window in sizes]
    given = _geometry(sizes) | {"dilations": dilations, "group": groups}
    return _activated(
        w, w.add("Transpose", w.add("Conv", image, w.constant(weights), *more, **given), perm=_LAST), node.options
    )


def _max_pool(w: _Writer, node: Node) -> str:
    sizes = pool_2d.windows(node.options, w.shape(node.inputs[0]))
    image = w.add("Transpose", w.value(node.inputs[0]), perm=_FIRST)
    y = w.add("MaxPool", image, kernel_shape=[window.size for window in sizes], **_geometry(sizes))
    return _activated(w, w.add("Transpose", y, perm=_LAST), node.options)


def _shaped(w: _Writer, x: str, shape: Sequence[int]) -> str:
    return w.add("Reshape", x, w.constant(np.array(shape, np.int64)))


def _dense(w: _Writer, node: Node) -> str:
    x, weights, bias = (*node.inputs, ABSENT)[:3]
    more = [] if bias == ABSENT else [w.value(bias)]
    rows = _shaped(w, w.value(x), (-1, w.shape(weights)[1]))
    y = w.add("Gemm", rows, w.value(weights), *more, transB=1)
    return _activated(w, _shaped(w, y, w.shape(node.outputs[0])), node.options)


def _batch_matmul(w: _Writer, node: Node) -> str:
    def read(tensor: int, turned: bool) -> str:
        rank = len(w.shape(tensor))
        order = (*range(rank - 2), rank - 1, rank - 2)
        return w.add("Transpose", w.value(tensor), perm=order) if turned else w.value(tensor)

    x, y = node.inputs
    return w.add("MatMul", read(x, node.options.adj_x), read(y, node.options.adj_y))


def _mean(w: _Writer, node: Node) -> str:
    axes = w.constant(np.atleast_1d(w.data(node.inputs[1])).astype(np.int64))
    return w.add("ReduceMean", w.value(node.inputs[0]), axes, keepdims=int(node.options.keep_dims))


def _lstm(w: _Writer, node: Node) -> str:
    """Write a plain LSTM, batch first, from states that are zeros."""
    i = node.inputs
    others = any(i[place] != ABSENT for place in (9, 10, 11, 16, 17))
    if node.options.time_major or others or i[_GATES] == ABSENT:
        raise LiteclError("in ONNX: expected a plain LSTM, batch first")

    def gates(first: int) -> Array:
        return np.concatenate([w.data(i[first + gate]) for gate in _ONNX_GATES])

    weights, recurrent, biases = gates(_GATES), gates(_RECURRENT), gates(_BIASES)
    biases = np.concatenate([biases, np.zeros_like(biases)])
    x = w.add("Transpose", w.value(i[0]), perm=(1, 0, 2))
    given = [w.constant(part[np.newaxis]) for part in (weights, recurrent, biases)]
    y = w.add("LSTM", x, *given, hidden_size=recurrent.shape[1])  # [time, 1, batch, units]
    return w.add("Squeeze", w.add("Transpose", y, perm=(2, 0, 1, 3)), w.constant(np.array([2], np.int64)))


def _squared_difference(w: _Writer, node: Node) -> str:
    difference = w.add("Sub", *map(w.value, node.inputs))
    return w.add("Mul", difference, difference)


def _softmax(w: _Writer, node: Node) -> str:
    scaled = w.add("Mul", w.value(node.inputs[0]), w.constant(np.array(node.options.beta, np.float32)))
    return w.add("Softmax", scaled, axis=-1)


def _gelu(w: _Writer, node: Node) -> str:
    return w.add("Gelu", w.value(node.inputs[0]), approximate="tanh" if node.options.approximate else "none")


def _of(name: str) -> Callable[[_Writer, Node], str]:
    """Return what writes an operator of ONNX, with an activation behind it."""
    return lambda w, node: _activated(w, w.add(name, *map(w.value, node.inputs)), node.options)


_WRITERS: Mapping[Op | ControlOp, Callable[[_Writer, Node], str]] = {
    conv_2d.CONV_2D: _conv,
    depthwise_conv_2d.DEPTHWISE_CONV_2D: _conv,
    pool_2d.MAX_POOL_2D: _max_pool,
    FULLY_CONNECTED: _dense,
    BATCH_MATMUL: _batch_matmul,
    reduce.MEAN: _mean,
    RESHAPE: lambda w, node: _shaped(w, w.value(node.inputs[0]), w.shape(node.outputs[0])),
    TRANSPOSE: lambda w, node: w.add("Transpose", w.value(node.inputs[0]), perm=w.data(node.inputs[1]).tolist()),
    UNIDIRECTIONAL_SEQUENCE_LSTM: _lstm,
    binary.ADD: _of("Add"),
    binary.SUB: _of("Sub"),
    binary.MUL: _of("Mul"),
    binary.SQUARED_DIFFERENCE: _squared_difference,
    unary.LOGISTIC: _of("Sigmoid"),
    unary.RSQRT: lambda w, node: w.add("Reciprocal", w.add("Sqrt", w.value(node.inputs[0]))),
    unary.TANH: _of("Tanh"),
    SOFTMAX: _softmax,
    GELU: _gelu,
}

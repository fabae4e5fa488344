"""PyTorch as a peer on the same device: a model's graph of floats, operator by operator, where PyTorch is installed.

On a CUDA device the graph is recorded once and replayed, so that Python's part of a run is one call, as it is litecl's.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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

_WARM_UP = 3  # runs before a graph is recorded
_GATES, _RECURRENT, _BIASES = 1, 5, 12  # positions of an LSTM's operands, in the order of PyTorch's gates


class TorchModel:
    """A model of one subgraph in PyTorch, on its first CUDA device or the CPU. Raises LiteclError where PyTorch is not
    installed, or an operator is not in the table.

    runs_on: "CUDA" or "CPU".
    """

    def __init__(self, content: bytes) -> None:
        self._torch = torch_package()
        (self._graph,) = _only(read(content).subgraphs)
        unknown = {node.op.name for node in self._graph.nodes if node.op not in _FUNCTIONS}
        if unknown:
            raise LiteclError(f"in PyTorch: expected operators of its table, got {', '.join(sorted(unknown))}")
        cuda = self._torch.cuda.is_available()
        self._device = self._torch.device("cuda" if cuda else "cpu")
        self.runs_on = "CUDA" if cuda else "CPU"
        self._recorded: Any = None
        self._torch.backends.cudnn.allow_tf32 = False  # float32 it is
        self._torch.backends.cudnn.benchmark = True
        self._constants = {i: self._uploaded(t.data) for i, t in enumerate(self._graph.tensors) if t.data is not None}
        self._prepared: dict[int, Any] = {}

    def prepare(self, inputs: Sequence[Array]) -> None:
        """Upload the inputs; record what runs, on a CUDA device."""
        self._inputs = [self._uploaded(value) for value in inputs]
        with self._torch.inference_mode():
            for _ in range(_WARM_UP):
                self._outputs = self._computed()
            if self._device.type == "cuda":
                self._torch.cuda.synchronize()
                self._recorded = self._torch.cuda.CUDAGraph()
                with self._torch.cuda.graph(self._recorded):
                    self._outputs = self._computed()

    def run(self) -> list[Array]:
        """Return the outputs on the host."""
        with self._torch.inference_mode():
            if self._recorded is not None:
                self._recorded.replay()
            else:
                self._outputs = self._computed()
            return [output.cpu().numpy() for output in self._outputs]

    def _uploaded(self, value: Array) -> Any:
        return self._torch.from_numpy(value.copy()).to(self._device)

    def _computed(self) -> list[Any]:
        values = {**self._constants, **dict(zip(self._graph.inputs, self._inputs, strict=True))}
        for number, node in enumerate(self._graph.nodes):
            inputs = [None if i == ABSENT else values.get(i) for i in node.inputs]
            kept = self._prepared.setdefault(number, {})
            values[node.outputs[0]] = _FUNCTIONS[node.op](self._torch, node, inputs, kept)
        return [values[i] for i in self._graph.outputs]


def torch_package() -> Any:
    """Import PyTorch. Raises LiteclError where it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise LiteclError(f"comparing with PyTorch needs its package: {error}") from error


def _only(subgraphs: Sequence[Subgraph]) -> Sequence[Subgraph]:
    if len(subgraphs) != 1:
        raise LiteclError(f"in PyTorch: expected one subgraph, got {len(subgraphs)}")
    return subgraphs


def _activated(torch: Any, y: Any, options: Any) -> Any:
    function = getattr(options, "fused_activation_function", ActivationFunctionType.NONE)
    if function == ActivationFunctionType.NONE:
        return y
    bounds = {ActivationFunctionType.RELU: (0.0, None), ActivationFunctionType.RELU6: (0.0, 6.0)}
    if function not in bounds:
        raise LiteclError(f"in PyTorch: expected one of {', '.join(f.name for f in bounds)}, got {function.name}")
    return torch.clamp(y, *bounds[function])


def _first(image: Any) -> Any:
    """Return an image with channels first, where it is."""
    return image.permute(0, 3, 1, 2)


def _last(image: Any) -> Any:
    return image.permute(0, 2, 3, 1)


def _padded(torch: Any, x: Any, windows: Sequence[Window], value: float) -> Any:
    height, width = windows
    around = (width.before, width.after, height.before, height.after)
    return torch.nn.functional.pad(x, around, value=value) if any(around) else x


def _conv(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    x, filter_, bias = (*inputs, None)[:3]
    depthwise = node.op is depthwise_conv_2d.DEPTHWISE_CONV_2D
    sizes = (depthwise_conv_2d if depthwise else conv_2d).windows(node.options, tuple(x.shape), tuple(filter_.shape))
    if "filter" not in kept:
        by_column = filter_.permute(3, 0, 1, 2) if depthwise else _first(filter_)
        kept["filter"] = by_column.contiguous(memory_format=torch.channels_last)
    groups = x.shape[3] // kept["filter"].shape[1]
    strides, dilations = [w.stride for w in sizes], [w.dilation for w in sizes]
    alike = all(window.before == window.after for window in sizes)
    image = _first(x) if alike else _padded(torch, _first(x), sizes, 0.0)
    pads = [w.before for w in sizes] if alike else 0
    y = torch.nn.functional.conv2d(image, kept["filter"], bias, strides, pads, dilations, groups)
    return _activated(torch, _last(y), node.options)


def _max_pool(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    sizes = pool_2d.windows(node.options, tuple(inputs[0].shape))
    image = _padded(torch, _first(inputs[0]), sizes, float("-inf"))
    y = torch.nn.functional.max_pool2d(image, [w.size for w in sizes], [w.stride for w in sizes])
    return _activated(torch, _last(y), node.options)


def _dense(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    x, weights, bias = (*inputs, None)[:3]
    y = torch.nn.functional.linear(x.reshape(-1, weights.shape[1]), weights, bias)
    return _activated(torch, y.reshape(*x.shape[:-1], -1) if node.options.keep_num_dims else y, node.options)


def _batch_matmul(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    x, y = inputs
    o = node.options
    return torch.matmul(x.transpose(-1, -2) if o.adj_x else x, y.transpose(-1, -2) if o.adj_y else y)


def _mean(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    axes = kept.setdefault("axes", tuple(inputs[1].reshape(-1).tolist()))
    return torch.mean(inputs[0], axes, keepdim=node.options.keep_dims)


def _reshape(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    return inputs[0].reshape(kept.setdefault("shape", tuple(inputs[1].tolist())))


def _transpose(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    return inputs[0].permute(kept.setdefault("order", tuple(inputs[1].tolist())))


def _lstm(torch: Any, node: Node, inputs: list[Any], kept: dict[str, Any]) -> Any:
    """Run a plain LSTM, batch first, from states that are zeros."""
    if "layer" not in kept:
        others = [inputs[i] for i in range(9, 12)] + [inputs[i] for i in range(16, 18)]
        if node.options.time_major or any(other is not None for other in others) or inputs[_GATES] is None:
            raise LiteclError("in PyTorch: expected a plain LSTM, batch first")
        units, depth = inputs[_GATES].shape
        layer = torch.nn.LSTM(depth, units, batch_first=True).to(inputs[0].device)
        weights = [torch.cat(inputs[first : first + 4]) for first in (_GATES, _RECURRENT, _BIASES)]
        with torch.no_grad():
            for name, value in zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"), weights, strict=True):
                getattr(layer, name).copy_(value)
            layer.bias_hh_l0.zero_()
        kept["layer"] = layer
    return kept["layer"](inputs[0])[0]


def _of(name: str) -> Callable[..., Any]:
    """Return a function of PyTorch's of this name, with a clamp behind it."""
    return lambda torch, node, inputs, kept: _activated(torch, getattr(torch, name)(*inputs), node.options)


_FUNCTIONS: Mapping[Op | ControlOp, Callable[..., Any]] = {
    conv_2d.CONV_2D: _conv,
    depthwise_conv_2d.DEPTHWISE_CONV_2D: _conv,
    pool_2d.MAX_POOL_2D: _max_pool,
    FULLY_CONNECTED: _dense,
    BATCH_MATMUL: _batch_matmul,
    reduce.MEAN: _mean,
    RESHAPE: _reshape,
    TRANSPOSE: _transpose,
    UNIDIRECTIONAL_SEQUENCE_LSTM: _lstm,
    binary.ADD: _of("add"),
    binary.SUB: _of("sub"),
    binary.MUL: _of("mul"),
    binary.SQUARED_DIFFERENCE: lambda torch, node, inputs, kept: torch.square(inputs[0] - inputs[1]),
    unary.LOGISTIC: _of("sigmoid"),
    unary.RSQRT: _of("rsqrt"),
    unary.TANH: _of("tanh"),
    SOFTMAX: lambda torch, node, inputs, kept: torch.softmax(inputs[0] * node.options.beta, -1),
    GELU: lambda torch, node, inputs, kept: torch.nn.functional.gelu(
        inputs[0], approximate="tanh" if node.options.approximate else "none"
    ),
}

"""The error of a model with integer weights against the same model with float weights."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.interpreter import Interpreter
from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.graph import ABSENT, Array, Model, Subgraph, TensorSpec
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import Runtime

_SETS = 32  # of inputs


def with_float_weights(model: Model) -> Model:
    """Return a model whose integer weights of float results are the floats that they represent."""
    return replace(model, subgraphs=tuple(_floats(graph) for graph in model.subgraphs))


def _floats(graph: Subgraph) -> Subgraph:
    tensors = [*graph.tensors]
    for node in graph.nodes:
        if node.op.name != "DEQUANTIZE" and graph.tensors[node.outputs[0]].type == TensorType.FLOAT32:
            for t in node.inputs:
                if t != ABSENT and tensors[t].data is not None and tensors[t].type in hybrid.INTEGERS:
                    tensors[t] = _represented(tensors[t])
    return replace(graph, tensors=tuple(tensors))


def _represented(spec: TensorSpec) -> TensorSpec:
    if spec.quantization is None or not spec.quantization.scale.size:
        return spec
    along = [1] * len(spec.static_shape)
    along[spec.quantization.quantized_dimension] = -1
    assert spec.data is not None
    values = hybrid.integers(spec.data) * spec.quantization.scale.astype(np.float32).reshape(along)
    return replace(spec, type=TensorType.FLOAT32, data=values, quantization=None)


def feeds_of(model: bytes) -> list[list[Array]]:
    """Return inputs from 0 to 1, as magnitudes of sounds and pixels of images are."""
    rng = np.random.default_rng(5)
    shapes = [detail["shape"] for detail in Interpreter(model_content=model).get_input_details()]
    return [[rng.random(shape, np.float32) for shape in shapes] for _ in range(_SETS)]


def on_xnnpack(model: bytes) -> Runtime:
    """Return LiteRT with its default kernels."""
    interpreter: Runtime = LiteRT(model_content=model)
    return interpreter


def error(runtime: Runtime, exact: Runtime, feeds: Sequence[Sequence[Array]]) -> float:
    """Return the RMS of the differences of all outputs."""
    apart = _outputs(runtime, feeds) - _outputs(exact, feeds)
    return float(np.sqrt((apart**2).mean()))


def _outputs(runtime: Runtime, feeds: Sequence[Sequence[Array]]) -> Array:
    runtime.allocate_tensors()
    outputs = []
    for values in feeds:
        for detail, value in zip(runtime.get_input_details(), values, strict=True):
            runtime.set_tensor(detail["index"], value)
        runtime.invoke()
        outputs += [np.ravel(runtime.get_tensor(detail["index"])) for detail in runtime.get_output_details()]
    return np.concatenate(outputs).astype(np.float64)

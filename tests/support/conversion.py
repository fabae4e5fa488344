"""The runtimes that run a converted model."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.converter import Converter
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model
from support import oracle
from support.compare import assert_close

TOLERANCE = 1e-5


def converter_of(function: Callable[..., Any], *specs: Any, keep: Any = None) -> Converter:
    """The converter of a TensorFlow function, traced for these specs. keep: holds its variables."""
    import tensorflow as tf

    traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    return Converter.from_concrete_functions([traced], keep)


def litert(content: bytes, resolver: str = "optimised") -> Any:
    """LiteRT's interpreter with one of its sets of kernels."""
    return LiteRT(model_content=content, num_threads=1, experimental_op_resolver_type=oracle.RESOLVERS[resolver])


def runtimes(content: bytes) -> list[Any]:
    """LiteRT, and litecl without and with its delegate."""
    return [
        litert(content),
        Interpreter(model_content=content),
        Interpreter(model_content=content, delegates=[CLDelegate(dynamic_range="reference")]),
    ]


def invoke(runtime: Any, values: Sequence[Array]) -> list[Array]:
    """Return the outputs for inputs given in order."""
    details = runtime.get_input_details()
    for detail, value in zip(details, values, strict=True):
        if tuple(detail["shape"]) != value.shape:
            runtime.resize_tensor_input(detail["index"], value.shape)
    runtime.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        runtime.set_tensor(detail["index"], value)
    runtime.invoke()
    return [np.array(runtime.get_tensor(detail["index"])) for detail in runtime.get_output_details()]


def assert_all_close(got: Sequence[Array], expected: Sequence[Array]) -> None:
    """Floating-point results are within the tolerance, all others equal."""
    for value, wanted in zip(got, expected, strict=True):
        assert_close(value, wanted, TOLERANCE if wanted.dtype.kind == "f" else 0.0)


def assert_computes(content: bytes, fed: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> None:
    """Check that every runtime gives the expected results for consecutive inputs."""
    for runtime in runtimes(content):
        for values, wanted in zip(fed, expected, strict=True):
            assert_all_close(invoke(runtime, values), wanted)


def operators(model: Model) -> Counter[str]:
    """Count each operator of a model."""
    return Counter(node.op.name for subgraph in model.subgraphs for node in subgraph.nodes)


def sizes(model: Model) -> list[int]:
    """Count the operators of each subgraph."""
    return [len(subgraph.nodes) for subgraph in model.subgraphs]

"""Expected outputs from ai_edge_litert's reference kernels, which are independent of litecl."""

from collections.abc import Sequence

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from litecl.interpreter.graph import Array


def run(content: bytes, feeds: Sequence[Array], resolver: OpResolverType = OpResolverType.BUILTIN_REF) -> list[Array]:
    """Set a model's inputs in order, resizing those whose shape differs, and return its outputs in order."""
    interpreter = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=resolver)
    details = interpreter.get_input_details()
    for detail, feed in zip(details, feeds, strict=True):
        if tuple(detail["shape"]) != feed.shape:
            interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def run_to(content: bytes, feeds: Sequence[Array], tensors: Sequence[int]) -> list[Array]:
    """Return the values of any tensors of the first subgraph, by the reference kernels."""
    interpreter = Interpreter(
        model_content=content,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    details = interpreter.get_input_details()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(tensor)) for tensor in tensors]


WITH_OPTIMISED_KERNELS = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
"""For the few operators that have no reference kernel."""

RESOLVERS = {
    "reference": OpResolverType.BUILTIN_REF,
    "optimised": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "default": OpResolverType.BUILTIN,
}
"""LiteRT's sets of kernels by name; the default one has XNNPACK, which brings operators of its own."""

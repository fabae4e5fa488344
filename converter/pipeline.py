"""The order of the passes, from a TensorFlow program to one of TFLite's operators."""

from collections.abc import Callable

from litecl.converter.graph import Function, Module
from litecl.converter.lower import lower
from litecl.converter.passes.activations import fuse_activations
from litecl.converter.passes.arithmetic import simplify_arithmetic
from litecl.converter.passes.dense import fuse_dense
from litecl.converter.passes.dilation import fold_dilation
from litecl.converter.passes.duplicates import merge_duplicates
from litecl.converter.passes.fold import Evaluate, fold_constants
from litecl.converter.passes.freeze import freeze_variables
from litecl.converter.passes.fused_activation import fuse_activation
from litecl.converter.passes.identities import remove_identities
from litecl.converter.passes.inline import inline_calls
from litecl.converter.passes.linear import fold_linear
from litecl.converter.passes.lstm_loops import fuse_lstm_loops
from litecl.converter.passes.padding import fold_padding
from litecl.converter.passes.repeats import fuse_repeats
from litecl.converter.passes.reshapes import join_reshapes
from litecl.converter.passes.sizes import resolve_sizes

# On TensorFlow's operators, and again on what the lowering made of them, until nothing changes.
_TENSORFLOW: tuple[Callable[[Function], None], ...] = (
    simplify_arithmetic,
    fold_dilation,
    remove_identities,
    fuse_dense,
    resolve_sizes,
    fuse_repeats,
    fuse_activations,
    remove_identities,
)
_TFLITE: tuple[Callable[[Function], bool], ...] = (join_reshapes, fold_linear, fuse_activation, fold_padding)
_MAX_ROUNDS = 20


def run(module: Module, evaluate: Evaluate, infer_shapes: Callable[[Function], None]) -> None:
    """Turns the module into one of TFLite's operators.

    evaluate: runs a TensorFlow operator on constants. infer_shapes: shapes of a function whose inputs' shapes changed.
    """
    inline_calls(module)
    for function in module.all_functions():
        remove_identities(function)
    fuse_lstm_loops(module)
    function = module.main
    freeze_variables(function)
    if module.reshaped:
        infer_shapes(function)
    fold_constants(function, evaluate)
    function.check()
    for apply in _TENSORFLOW:
        apply(function)
        function.check()
    fold_constants(function, evaluate)
    lower(function)
    function.check()
    for _ in range(_MAX_ROUNDS):
        if not _round(function):
            break
    merge_duplicates(function)
    function.check()


def _round(function: Function) -> bool:
    changed = False
    for apply in _TFLITE:
        changed |= apply(function)
        function.check()
    return changed

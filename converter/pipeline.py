"""The order of the passes, from a TensorFlow program to one of TFLite's operators."""

from collections.abc import Callable, Sequence

from litecl.converter.graph import Function, Module
from litecl.converter.lower import lower
from litecl.converter.passes.activations import fuse_activations
from litecl.converter.passes.arithmetic import simplify_arithmetic
from litecl.converter.passes.bodies import own_bodies
from litecl.converter.passes.branches import simplify_branches
from litecl.converter.passes.dense import fuse_dense
from litecl.converter.passes.dilation import fold_dilation
from litecl.converter.passes.duplicates import merge_duplicates
from litecl.converter.passes.fold import Evaluate, fold_constants
from litecl.converter.passes.frames import raise_loops
from litecl.converter.passes.fused_activation import fuse_activation
from litecl.converter.passes.identities import remove_identities
from litecl.converter.passes.inline import inline_calls
from litecl.converter.passes.linear import fold_linear
from litecl.converter.passes.list_elements import Scope, shape_reads
from litecl.converter.passes.loop_variables import simplify_loops
from litecl.converter.passes.lstm_loops import fuse_lstm_loops
from litecl.converter.passes.padding import fold_padding
from litecl.converter.passes.ref_variables import raise_variables
from litecl.converter.passes.repeats import fuse_repeats
from litecl.converter.passes.reshapes import join_reshapes
from litecl.converter.passes.sizes import resolve_sizes
from litecl.converter.passes.switches import raise_branches
from litecl.converter.passes.tensor_arrays import raise_arrays
from litecl.converter.passes.tensor_lists import lower_lists
from litecl.converter.passes.variables import changed_variables, freeze_variables

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


def run(modules: Sequence[Module], evaluate: Evaluate, infer_shapes: Callable[[Function], None]) -> None:
    """Turns modules, which may share variables, into ones of TFLite's operators.

    evaluate: runs TensorFlow operators on constants. infer_shapes: shapes of a function whose inputs' shapes changed.
    """
    for module in modules:
        for function in (module.main, *module.functions.values()):
            module.reshaped |= _raise_control(function)
        inline_calls(module)
        own_bodies(module)
        _each(module, remove_identities)
    changed = changed_variables(modules)
    for module in modules:
        freeze_variables(module, changed)
        _run(module, evaluate, infer_shapes)


def _raise_control(function: Function) -> bool:
    """TensorFlow 1's control flow as TensorFlow 2's; says whether there was any. Until then nodes may form cycles."""
    raise_variables(function)
    if not any(node.op in ("Enter", "Switch", "TensorArrayV3") for node in function.nodes):
        return False
    raise_arrays(function)
    raise_loops(function)
    raise_branches(function)
    return True


def _run(module: Module, evaluate: Evaluate, infer_shapes: Callable[[Function], None]) -> None:
    _simplify_control(module, evaluate)
    _each(module, fuse_lstm_loops)
    has_bodies = any(node.bodies for node in module.main.nodes)
    if module.reshaped and has_bodies:
        shape_reads(Scope(module.main))
        infer_shapes(module.main)
    lower_lists(module)
    _simplify_control(module, evaluate)
    if module.reshaped or has_bodies:
        infer_shapes(module.main)
    _each(module, lambda function: fold_constants(function, evaluate))
    for apply in _TENSORFLOW:
        _each(module, apply)
    _simplify_control(module, evaluate)
    _each(module, lower)
    for _ in range(_MAX_ROUNDS):
        if not _round(module):
            break
    _each(module, merge_duplicates)


def _each(module: Module, apply: Callable[[Function], object]) -> bool:
    """Applies a pass to every function, innermost first; says whether one changed."""
    changed = False
    for function in module.main.walk():
        changed |= bool(apply(function))
    module.main.check()
    return changed


def _simplify_control(module: Module, evaluate: Evaluate) -> None:
    for _ in range(_MAX_ROUNDS):
        _each(module, lambda function: fold_constants(function, evaluate))
        changed = _each(module, simplify_loops) | _each(module, simplify_branches)
        if not changed:
            return


def _round(module: Module) -> bool:
    changed = [_each(module, apply) for apply in _TFLITE]
    return any(changed)

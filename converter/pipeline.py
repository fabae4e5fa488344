"""Orders the passes that turn a TensorFlow program into TFLite operators."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from litecl.converter.fusions.fusion import Fusion
from litecl.converter.graph import Function, Module
from litecl.converter.lower import LOWERINGS, lower
from litecl.converter.own_ops import BIDIRECTIONAL_LSTM, LSTM, RNN
from litecl.converter.passes.calls.bodies import own_bodies
from litecl.converter.passes.calls.composites import fuse_composites
from litecl.converter.passes.calls.inline import inline_calls
from litecl.converter.passes.control.branches import simplify_branches
from litecl.converter.passes.control.effects import refuse_effects
from litecl.converter.passes.control.loops import simplify_loops
from litecl.converter.passes.control.tables import fill_tables
from litecl.converter.passes.control.variables import changed_variables, freeze_variables
from litecl.converter.passes.lists.elements import Scope, shape_reads
from litecl.converter.passes.lists.lower_lists import lower_lists
from litecl.converter.passes.recurrent.bidirectional import fuse_bidirectional
from litecl.converter.passes.recurrent.lstm import fuse_lstm_loops
from litecl.converter.passes.recurrent.rnn import fuse_rnn_loops
from litecl.converter.passes.tensorflow.activations import fuse_activations
from litecl.converter.passes.tensorflow.arithmetic import simplify_arithmetic
from litecl.converter.passes.tensorflow.complex_parts import split_complex
from litecl.converter.passes.tensorflow.complex_rules import RULES
from litecl.converter.passes.tensorflow.dense import fuse_dense
from litecl.converter.passes.tensorflow.dilation import fold_dilation
from litecl.converter.passes.tensorflow.fold import Evaluate, fold_constants
from litecl.converter.passes.tensorflow.identities import remove_identities
from litecl.converter.passes.tensorflow.integer_dense import fuse_integer_dense
from litecl.converter.passes.tensorflow.layout import put_channels_last
from litecl.converter.passes.tensorflow.narrow_integers import widen_integers
from litecl.converter.passes.tensorflow.packs import forward_packs
from litecl.converter.passes.tensorflow.precision import DOUBLES, HALVES, use_float32
from litecl.converter.passes.tensorflow.repeats import fuse_repeats
from litecl.converter.passes.tensorflow.resampling import resample_by_products
from litecl.converter.passes.tensorflow.shape_arithmetic import resolve_sizes
from litecl.converter.passes.tensorflow.shape_sources import use_shape_sources
from litecl.converter.passes.tflite.duplicates import merge_duplicates
from litecl.converter.passes.tflite.empty_lists import keep_a_row
from litecl.converter.passes.tflite.fused_activation import fuse_activation
from litecl.converter.passes.tflite.growing_loops import show_growth
from litecl.converter.passes.tflite.kept_dims import keep_dims
from litecl.converter.passes.tflite.linear import fold_linear
from litecl.converter.passes.tflite.padding import fold_padding
from litecl.converter.passes.tflite.reshapes import join_reshapes
from litecl.converter.passes.v1.arrays import raise_arrays
from litecl.converter.passes.v1.frames import raise_loops
from litecl.converter.passes.v1.switches import raise_branches
from litecl.converter.passes.v1.variables import raise_variables
from litecl.converter.records import Variable
from litecl.converter.report import ConversionReport, FusionRecord, OwnOperator, is_own
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

# _TENSORFLOW runs on TensorFlow's operators, _TFLITE on the lowered graph until nothing changes.
_TENSORFLOW: tuple[Callable[[Function], None], ...] = (
    simplify_arithmetic,
    fold_dilation,
    remove_identities,
    forward_packs,
    fuse_dense,
    use_shape_sources,
    resolve_sizes,
    fuse_repeats,
    fuse_activations,
    remove_identities,
)
_TFLITE: tuple[Callable[[Function], bool], ...] = (join_reshapes, keep_dims, fold_linear, fuse_activation, fold_padding)
_MAX_ROUNDS = 20
_SHAPELESS = (TensorType.RESOURCE, TensorType.VARIANT)
_LAYERS: Mapping[Any, str] = {LSTM: "LSTM", RNN: "SimpleRNN", BIDIRECTIONAL_LSTM: "Bidirectional LSTM"}

Observe = Callable[[str, Module], None]


@dataclass(frozen=True)
class Tools:
    """TensorFlow functions that passes need.

    evaluate: runs operators on constants. infer_shapes: updates a function whose input shapes changed.
    compose: replaces operators by compositions of others; returns whether there were any.
    """

    evaluate: Evaluate
    infer_shapes: Callable[[Function], None]
    compose: Callable[[Function], bool] = lambda function: False


@dataclass(frozen=True)
class Pipeline:
    """Converts modules to TFLite operators.

    fusions: for composites, in the order tried. fuse_layers: whether loops become fused operators.
    observe: called after every pass.
    """

    tools: Tools
    fusions: Sequence[Fusion] = ()
    fuse_layers: bool = True
    observe: Observe = lambda name, module: None
    report: ConversionReport = field(default_factory=ConversionReport)

    def run(self, modules: Sequence[Module]) -> None:
        """Run all passes; the modules may share variables.

        Raises ConversionError that names nodes, and the lines of user code if known.
        """
        for module in modules:
            with placed(module):
                self._prepare(module)
        changed = changed_variables(modules)
        for module in modules:
            with placed(module):
                self._convert(module, changed)
            self.report.own.extend(_own(module))

    def _convert(self, module: Module, changed: set[Variable]) -> None:
        self._whole(module, "freeze_variables", lambda m: freeze_variables(m, changed))
        # Fold constants (tables, for instance) in their original types.
        self._each(module, lambda f: fold_constants(f, self.tools.evaluate), "fold_constants")
        self._whole(module, "use_float32", lambda m: use_float32(m, DOUBLES))
        self._control(module)
        self._tensorflow(module)
        self._tflite(module)

    def _prepare(self, module: Module) -> None:
        """Make one TensorFlow 2 graph that owns every function it runs."""
        use_float32(module, HALVES)  # nodes may still form cycles
        self._whole(module, "raise_control", _raise_control)
        self._whole(module, "inline_calls", lambda m: self.report.fusions.extend(inline_calls(m, self.fusions)))
        self._whole(module, "own_bodies", own_bodies)
        self._each(module, remove_identities)
        self._each(module, lambda f: fold_constants(f, self.tools.evaluate), "fold_constants")
        self._each(module, fill_tables)

    def _control(self, module: Module) -> None:
        """Resolve composites, fuse or simplify loops, turn lists into tensors."""
        main = module.main
        self._simplify_control(module)
        self._whole(module, "refuse_effects", lambda m: refuse_effects(m.main, LOWERINGS))
        if module.reshaped or _lacks_shapes(main):
            shape_reads(Scope(main))
            self._whole(module, "infer_shapes", lambda m: self.tools.infer_shapes(m.main))
        self._each(module, fuse_integer_dense)
        self._each(module, widen_integers)
        self._each(module, self.tools.compose, "compose")
        self._each(module, lambda f: self.report.fusions.extend(fuse_composites(f)), "fuse_composites")
        self._simplify_control(module)
        if self.fuse_layers:
            for apply in (fuse_lstm_loops, fuse_rnn_loops, fuse_bidirectional):
                self._each(module, apply)
        self.report.fusions.extend(
            FusionRecord(_LAYERS[node.op], node.name) for f in main.walk() for node in f.nodes if node.op in _LAYERS
        )
        self._whole(module, "lower_lists", lower_lists)
        self._simplify_control(module)
        if module.reshaped or _has_bodies(main):
            self._whole(module, "infer_shapes", lambda m: self.tools.infer_shapes(m.main))

    def _tensorflow(self, module: Module) -> None:
        self._each(module, lambda f: fold_constants(f, self.tools.evaluate), "fold_constants")
        self._each(module, lambda f: split_complex(f, RULES), "split_complex")
        self._each(module, put_channels_last)
        for apply in _TENSORFLOW:
            self._each(module, apply)
        self._simplify_control(module)
        self._each(module, lambda f: resample_by_products(f, self.tools.evaluate), "resample_by_products")

    def _tflite(self, module: Module) -> None:
        self._whole(module, "lower", lower)
        for _ in range(_MAX_ROUNDS):
            changed = [self._each(module, apply) for apply in _TFLITE]
            if not any(changed):
                break
        self._each(module, merge_duplicates)
        self._each(module, keep_a_row)
        self._each(module, show_growth)

    def _simplify_control(self, module: Module) -> None:
        for _ in range(_MAX_ROUNDS):
            self._each(module, lambda f: fold_constants(f, self.tools.evaluate), "fold_constants")
            if not (self._each(module, simplify_loops) | self._each(module, simplify_branches)):
                return

    def _each(self, module: Module, apply: Callable[[Function], object], name: str = "") -> bool:
        """Apply a pass to every function, innermost first; return whether one changed."""
        changed = False

        def all_functions(module: Module) -> None:
            nonlocal changed
            for function in module.main.walk():
                changed |= bool(apply(function))

        self._whole(module, name or apply.__name__, all_functions)
        return changed

    def _whole(self, module: Module, name: str, apply: Callable[[Module], object]) -> None:
        start = time.perf_counter()
        apply(module)
        self.report.passes[name] = self.report.passes.get(name, 0.0) + time.perf_counter() - start
        module.main.check()
        self.observe(name, module)


@contextmanager
def placed(*modules: Module) -> Iterator[None]:
    """Add to errors the lines of user code that made the nodes they name."""
    try:
        yield
    except ConversionError as error:
        # Apostrophes also occur in words, so look up the text between any two.
        names = dict.fromkeys(re.findall("(?='([^']+)')", str(error)))
        lines = {name: line for name in names for module in modules if (line := module.place(name)) is not None}
        error.args = ("\n".join([str(error), *(f"{name!r} is made in {line}" for name, line in lines.items())]),)
        raise


def _raise_control(module: Module) -> None:
    """Rewrite TensorFlow 1's control flow and variables in TensorFlow 2's. Before that, nodes may form cycles."""
    for function in (module.main, *module.functions.values()):
        raise_variables(function)
        if any(node.op in ("Enter", "Switch", "TensorArrayV3") for node in function.nodes):
            raise_arrays(function)
            raise_loops(function)
            raise_branches(function)
            module.reshaped = True  # shapes in a graph with cycles are incomplete


def _own(module: Module) -> Iterator[OwnOperator]:
    for node in (node for function in module.main.walk() for node in function.nodes):
        if is_own(node.op_name):
            yield OwnOperator(node.op_name, node.name, module.place(node.name))


def _lacks_shapes(function: Function) -> bool:
    """Return whether values in bodies lack shapes: old SavedModels store none for functions."""
    bodies = (body for body in function.walk() if body is not function)
    made = (value for body in bodies for node in body.nodes for value in node.outputs)
    return any(value.shape is None and value.type not in _SHAPELESS for value in made)


def _has_bodies(function: Function) -> bool:
    return any(node.bodies for node in function.nodes)

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
from litecl.converter.passes.recurrent.layers import fuse_layers
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
from litecl.converter.passes.tensorflow.precision import DOUBLES, HALVES, use_float32, whole_doubles
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

_MAX_ROUNDS = 20
_LAYER_PASSES = (fuse_layers, fuse_bidirectional)
_TENSORFLOW: tuple[Callable[[Function], object], ...] = (
    put_channels_last,
    simplify_arithmetic,
    fold_dilation,
    remove_identities,
    forward_packs,
    fuse_dense,
    use_shape_sources,
    resolve_sizes,
    fuse_repeats,
    fuse_activations,
)
_TFLITE = (join_reshapes, keep_dims, fold_linear, fuse_activation, fold_padding)
_LAST = (merge_duplicates, keep_a_row, show_growth)
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


Pass = tuple[str, Callable[[Module], object]]  # a name, and a function that may return whether it changed the module


@dataclass(frozen=True)
class Stage:
    """Passes that run once, in order; then those of ``until_stable``, in order, until none changes anything."""

    once: Sequence[Pass]
    until_stable: Sequence[Pass] = ()


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
            self._run(module, [self._graph()])
        changed = changed_variables(modules)
        for module in modules:
            self._run(module, self._stages(changed))
            self.report.own.extend(_own(module))

    def _graph(self) -> Stage:
        """Return the passes that make one TensorFlow 2 graph, which owns every function it runs."""
        graph = [
            ("raise_control", _raise_control),
            ("inline_calls", lambda m: self.report.fusions.extend(inline_calls(m, self.fusions))),
            ("own_bodies", own_bodies),
        ]
        return Stage(graph, self._simplify())

    def _stages(self, changed: set[Variable]) -> list[Stage]:
        """Return the passes that follow. changed: variables that stay variables."""
        variables = [each(fill_tables), ("freeze_variables", lambda m: freeze_variables(m, changed))]
        composites = [
            ("use_float32", self._use_float32),  # after constants were computed in their own types
            ("refuse_effects", lambda m: refuse_effects(m.main, LOWERINGS)),
            ("infer_lost_shapes", self._infer_lost_shapes),
            each(fuse_integer_dense),
            each(widen_integers),
            each(self.tools.compose, "compose"),
            each(lambda f: self.report.fusions.extend(fuse_composites(f)), "fuse_composites"),
        ]
        layers = map(each, _LAYER_PASSES) if self.fuse_layers else ()
        lists = [*layers, each(self._record_layers, "record_layers"), ("lower_lists", lower_lists)]
        tensorflow = [
            ("infer_shapes", self._infer_shapes),
            each(lambda f: split_complex(f, RULES), "split_complex"),
            *map(each, _TENSORFLOW),
        ]
        lowered = [
            each(lambda f: resample_by_products(f, self.tools.evaluate), "resample_by_products"),
            ("lower", lower),
        ]
        return [
            *(Stage(passes, self._simplify()) for passes in (variables, composites, lists, tensorflow)),
            Stage(lowered, list(map(each, _TFLITE))),
            Stage(list(map(each, _LAST))),
        ]

    def _simplify(self) -> list[Pass]:
        fold = each(lambda f: fold_constants(f, self.tools.evaluate), "fold_constants")
        return [each(remove_identities), fold, each(simplify_loops), each(simplify_branches)]

    def _use_float32(self, module: Module) -> None:
        self.report.rounded.extend(whole_doubles(module))
        use_float32(module, DOUBLES)

    def _record_layers(self, function: Function) -> None:
        layers = [node for node in function.nodes if node.op in _LAYERS]
        self.report.fusions.extend(FusionRecord(_LAYERS[node.op], node.name) for node in layers)

    def _infer_lost_shapes(self, module: Module) -> None:
        if module.reshaped or _lacks_shapes(module.main):
            shape_reads(Scope(module.main))
            self.tools.infer_shapes(module.main)

    def _infer_shapes(self, module: Module) -> None:
        if module.reshaped or _has_bodies(module.main):
            self.tools.infer_shapes(module.main)

    def _run(self, module: Module, stages: Sequence[Stage]) -> None:
        with placed(module):
            for stage in stages:
                for step in stage.once:
                    self._apply(module, step)
                for _ in range(_MAX_ROUNDS):
                    changes = [self._apply(module, step) for step in stage.until_stable]
                    if not any(changes):
                        break

    def _apply(self, module: Module, step: Pass) -> bool:
        """Run a pass, measure and check it; return whether it says that it changed the module."""
        name, apply = step
        start = time.perf_counter()
        changed = apply(module)
        self.report.passes[name] = self.report.passes.get(name, 0.0) + time.perf_counter() - start
        module.main.check()
        self.observe(name, module)
        return bool(changed)


def each(apply: Callable[[Function], object], name: str = "") -> Pass:
    """Return a pass over every function of a module, innermost first."""

    def apply_to_all(module: Module) -> bool:
        changes = [bool(apply(function)) for function in module.main.walk()]
        return any(changes)

    return name or apply.__name__, apply_to_all


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
    use_float32(module, HALVES)
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
    results = (value for body in bodies for node in body.nodes for value in node.outputs)
    return any(value.shape is None and value.type not in _SHAPELESS for value in results)


def _has_bodies(function: Function) -> bool:
    return any(node.bodies for node in function.nodes)

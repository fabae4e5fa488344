"""Turns each kind of user's model into a ConcreteFunction, and from there into a module."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.python.eager import context

from litecl.converter.graph import Module
from litecl.converter.importer.graphdef import import_function, with_own_functions
from litecl.converter.importer.keras_lstm import whole_lstms
from litecl.converter.importer.keras_steps import all_steps
from litecl.converter.importer.optimizers import any_optimizer
from litecl.converter.importer.places import Places
from litecl.converter.importer.stablehlo.program import expand_stablehlo
from litecl.converter.records import Dims, Shapes
from litecl.interpreter.errors import ConversionError, LiteclError, brief
from litecl.interpreter.graph import Array

_DEFAULT_SIGNATURE = "serving_default"
_Load = TypeVar("_Load", bound=Callable[..., Any])


def eagerly(load: _Load) -> _Load:
    """Return a function that runs eagerly, even if the caller opened a graph or turned eager execution off."""

    @wraps(load)
    def run(*arguments: Any, **options: Any) -> Any:
        with context.eager_mode():
            return load(*arguments, **options)

    return run  # type: ignore[return-value]


@eagerly
def from_keras_model(
    model: Any, input_shapes: Shapes | None = None, fuse_layers: bool = True, keep_source: bool = False
) -> Module:
    """Return the module of a Keras model in inference mode: Sequential, functional, or subclassed and called once.

    fuse_layers: whether Keras 3's LSTM layers are kept whole.
    """
    if not _is_of_keras_2(model):
        require_keras(model)
    overrides = _Overrides(input_shapes)
    specs = tf.nest.map_structure(overrides.spec, _keras_inputs(model))
    overrides.all_used()
    takes_training = "training" in inspect.signature(model.call).parameters
    extra = {"training": False} if takes_training else {}

    def traced() -> Any:
        call = tf.function(lambda *arguments: model(*arguments, **extra), autograph=False)
        with all_steps(), _typed_errors(specs):
            return call.get_concrete_function(*specs)

    with whole_lstms(fuse_layers):
        concrete = traced()
    module = _module(concrete)
    module.place = Places(concrete)
    if keep_source:  # with Keras' own loops: what we compare with shares nothing with ours
        module.source = _source(traced(), module)
    return module


@contextmanager
def _typed_errors(specs: Any) -> Iterator[None]:
    """Raise ConversionError for whatever a model's code raises while it is traced."""
    try:
        yield
    except LiteclError:
        raise
    except Exception as error:
        message = re.sub(r"\x1b\[\d*m", "", str(error))  # which Keras emphasises
        open_ = any(None in spec.shape.as_list() for spec in tf.nest.flatten(specs) if spec.shape.rank is not None)
        advice = "if it needs the sizes of inputs, give input_shapes: " if open_ else ""
        raise ConversionError(f"TensorFlow cannot trace the model: {advice}{brief(message, 600)}") from error


@eagerly
def from_saved_model(
    path: str | Path,
    signature_keys: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    input_shapes: Shapes | None = None,
    keep_source: bool = False,
) -> dict[str, Module]:
    """Return the signatures of a SavedModel, as written by ``model.export`` and ``tf.saved_model.save``.

    By default all of them, ``serving_default`` first, since it runs when no signature is asked for.
    """
    try:
        with any_optimizer():
            loaded = tf.saved_model.load(str(path), tags=list(tags) if tags else None)
    except OSError as error:
        raise ConversionError(f"{path} is not a SavedModel that TensorFlow can load: {error}") from error
    except (ValueError, tf.errors.OpError) as error:  # unknown operators, or references in frames
        raise ConversionError(f"{path}: TensorFlow itself cannot load this SavedModel: {error}") from error
    keys = list(signature_keys or _all_signatures(loaded))
    missing = [key for key in keys if key not in loaded.signatures]
    if missing or not keys:
        wanted = f"no signature {missing[0]!r}" if missing else "no signatures"
        raise ConversionError(f"{path}: {wanted}; there are {sorted(loaded.signatures)}")
    return {key: _from_concrete(loaded.signatures[key], input_shapes, keep_source) for key in keys}


def _all_signatures(loaded: Any) -> list[str]:
    keys = sorted(loaded.signatures, key=lambda key: (key != _DEFAULT_SIGNATURE, key))
    # Keras exports its one function under two names.
    is_export = hasattr(loaded, "serve") and not hasattr(loaded, "_default_save_signature")
    return [key for key in keys if not (is_export and key == "serve" and len(keys) > 1)]


@eagerly
def from_concrete_functions(
    functions: Sequence[Any], input_shapes: Shapes | None = None, keep_source: bool = False
) -> dict[str, Module]:
    """Return modules of ConcreteFunctions, by their Python functions' names; a single one is ``serving_default``."""
    for function in functions:
        if not hasattr(function, "graph"):
            raise ConversionError(
                f"expected a ConcreteFunction, got {type(function).__name__}: call get_concrete_function() on it"
            )
    names = [_DEFAULT_SIGNATURE] if len(functions) == 1 else _names(functions)
    modules = {}
    for name, function in zip(names, functions, strict=True):
        modules[name] = _from_concrete(function, input_shapes, keep_source)
        modules[name].place = Places(function)
    return modules


def _names(functions: Sequence[Any]) -> list[str]:
    """Return a name for each function; several traces of one are numbered."""
    seen: Counter[str] = Counter()
    names = []
    for function in functions:
        name = function.graph.name
        names.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def _from_concrete(concrete: Any, input_shapes: Shapes | None, keep_source: bool = False) -> Module:
    module = _module(concrete, keep_source)
    overrides = _Overrides(input_shapes)
    for name, value in zip(module.input_names, module.main.inputs, strict=True):
        shape = overrides.shape(name, value.shape)
        module.reshaped |= shape != value.shape
        value.shape = shape
    overrides.all_used()
    return module


@eagerly
def from_frozen_graph(
    path: str | Path,
    input_arrays: Sequence[str],
    output_arrays: Sequence[str],
    input_shapes: Shapes | None = None,
    keep_source: bool = False,
) -> Module:
    """Return the module of a GraphDef without variables, cut at the named tensors."""
    graph_def = with_own_functions(_read_graph_def(Path(path)))
    wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph_def, name=""), [])
    try:
        inputs, outputs = (
            [wrapped.graph.as_graph_element(name if ":" in name else f"{name}:0") for name in names]
            for names in (input_arrays, output_arrays)
        )
    except (KeyError, ValueError) as error:
        raise ConversionError(f"{path}: {error}") from error
    by_tensor = {name if ":" in name else f"{name}:0": shape for name, shape in (input_shapes or {}).items()}
    shapes = {tensor.name.split(":")[0]: by_tensor[tensor.name] for tensor in inputs if tensor.name in by_tensor}
    module = _from_concrete(wrapped.prune(inputs, outputs), shapes, keep_source)
    module.input_names, module.output_names = list(input_arrays), list(output_arrays)
    return module


def _read_graph_def(path: Path) -> Any:
    graph_def = tf.compat.v1.GraphDef()
    content = path.read_bytes()
    try:
        if path.suffix == ".pbtxt":
            text_format.Parse(content, graph_def)
        else:
            graph_def.ParseFromString(content)
    except (DecodeError, text_format.ParseError) as error:
        raise ConversionError(f"{path} is not a GraphDef: {error}") from error
    return graph_def


def require_keras(model: Any) -> None:
    """Raise ConversionError unless ``model`` is a Keras 3 model running on TensorFlow."""
    if not isinstance(model, keras.Model):
        raise ConversionError(f"expected a keras.Model, got {type(model).__module__}.{type(model).__name__}")
    if keras.config.backend() != "tensorflow":
        raise ConversionError(f"Keras runs on {keras.config.backend()}: set KERAS_BACKEND=tensorflow before its import")


class _Overrides:
    """The user's shapes by input name; each must be used."""

    def __init__(self, shapes: Shapes | None) -> None:
        self._shapes = dict(shapes or {})
        self._seen: list[str] = []

    def shape(self, name: str, default: Dims | None) -> Dims | None:
        """Return an input's shape after overriding."""
        self._seen.append(name)
        if name not in self._shapes:
            return default
        shape = tuple(None if d is None or d < 0 else int(d) for d in self._shapes[name])
        fits = default is None or (
            len(shape) == len(default) and all(a in (b, None) or b is None for a, b in zip(default, shape, strict=True))
        )
        if not fits:
            raise ConversionError(f"input_shapes: {name!r} has shape {default}, which {shape} does not fit")
        return shape

    def spec(self, tensor: Any) -> Any:
        """Return the spec of a Keras input."""
        shape = self.shape(tensor.name, tuple(tensor.shape))
        return tf.TensorSpec(shape, tensor.dtype, name=tensor.name)

    def all_used(self) -> None:
        """Raise ConversionError if a shape names no input."""
        unknown = set(self._shapes) - set(self._seen)
        if unknown:
            raise ConversionError(f"input_shapes names {sorted(unknown)}; the inputs are {self._seen}")


def _is_of_keras_2(model: Any) -> bool:
    """Return whether a model is of the package tf_keras, which TensorFlow treats as Keras 2."""
    return any(kind.__module__.startswith("tf_keras.") and kind.__name__ == "Model" for kind in type(model).__mro__)


def _keras_inputs(model: Any) -> Sequence[Any]:
    """Return the positional arguments of a call, as nested symbolic tensors or TensorSpecs."""
    if _is_of_keras_2(model):
        return _keras_2_inputs(model)
    if getattr(model, "inputs", None) is not None:
        structure = model.inputs if isinstance(model, keras.Sequential) else model.input
        return [structure[0] if isinstance(structure, list) and len(structure) == 1 else structure]
    recorded = model.get_build_config() if model.built else None
    if not recorded:
        raise ConversionError(f"the model {model.name!r} has no inputs yet: call it once on data, or build it")
    shapes = recorded.get("shapes_dict") or {"args_0": recorded["input_shape"]}
    return [_specs(shape, key.removesuffix("_shape"), model.input_dtype) for key, shape in shapes.items()]


def _keras_2_inputs(model: Any) -> Sequence[Any]:
    if model.inputs is not None:
        return [model.input]
    arguments, _ = model.save_spec() or ((), {})
    if not arguments:
        raise ConversionError(f"the model {model.name!r} has no inputs yet: call it once on data, or build it")
    return list(arguments)


def _specs(shape: Any, name: str, dtype: str) -> Any:
    """Return TensorSpecs for recorded shapes, nested alike. The batch size of the recorded call is left open."""
    if isinstance(shape, Mapping):
        return {key: _specs(item, key, dtype) for key, item in shape.items()}
    if all(d is None or isinstance(d, int) for d in shape):
        return tf.TensorSpec((None, *shape[1:]), dtype, name=name)
    return [_specs(item, f"{name}_{i}", dtype) for i, item in enumerate(shape)]


def _module(concrete: Any, keep_source: bool = False) -> Module:
    module = import_function(concrete, _input_names(concrete), _output_names(concrete))
    expand_stablehlo(module)
    module.source = _source(concrete, module) if keep_source else None
    return module


def _source(concrete: Any, module: Module) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """Return a function that runs the original in TensorFlow, under the module's names."""
    keywords = getattr(concrete, "_arg_keywords", None)

    @eagerly
    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        tensors = [tf.constant(inputs[name]) for name in module.input_names]
        results = concrete(**dict(zip(keywords, tensors, strict=True))) if keywords else concrete(*tensors)
        values = [np.asarray(result) for result in tf.nest.flatten(results)]
        return dict(zip(module.output_names, values, strict=True))

    return run


def _input_names(concrete: Any) -> list[str]:
    """Return the names that callers use: argument names if known, else the placeholders'."""
    captured = {id(inner) for _, inner in concrete.graph.captures}
    placeholders = [tensor.name.split(":")[0] for tensor in concrete.graph.inputs if id(tensor) not in captured]
    # TensorFlow lowercases the names of placeholders and specs, but not those of arguments.
    keywords = getattr(concrete, "_arg_keywords", None) or ()
    return list(keywords) if len(keywords) == len(placeholders) else placeholders


def _output_names(concrete: Any) -> list[str]:
    count = len(concrete.graph.outputs)
    structure = concrete.structured_outputs
    if isinstance(structure, Mapping) and len(structure) == count:
        return sorted(structure)
    return [f"output_{i}" for i in range(count)]

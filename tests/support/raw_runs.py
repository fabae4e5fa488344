"""Runs TensorFlow's raw operators, one a model, in TensorFlow and, converted, in litecl."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from litecl.converter import Converter
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support.compare import is_close
from support.conversion import invoke
from support.raw_arguments import C
from support.raw_functions import FUNCTIONS
from support.raw_images import IMAGES
from support.raw_numbers import NUMBERS
from support.raw_sparse import SPARSE
from support.raw_texts import TEXTS

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {**NUMBERS, **IMAGES, **FUNCTIONS, **SPARSE, **TEXTS}
_TOLERANCE = 5e-5
# Each run draws others: what is compared is the shape, and the mean.
_DRAWN = ("Multinomial", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "RandomStandardNormal", "RandomUniform")
_DRAWN = (*_DRAWN, "RandomUniformInt", "TruncatedNormal")
# Their vectors have signs that are free.
_SIGNLESS = ("SelfAdjointEigV2", "Svd")
# Not functions of tensors, or of types that a .tflite file cannot hold.
_OTHER = (
    r"Quantized|Requant|Variable(?!Q)|Stack|Session|Summary|TensorList|TensorArray|Boosted|Dataset|Const$|Abort|Assert|Queue"
    r"|^(Placeholder|PlaceholderV2|Enter|Exit|Merge|NextIteration|Switch|LoopCond|SymbolicGradient|Send|Recv|RemoteCall)$"
)


class Verdict(Enum):
    """Tells what became of an operator."""

    EQUAL = "equal"
    DIFFERENT = "different"
    REFUSED = "refused"
    UNTRIED = "without arguments"


@dataclass(frozen=True)
class Result:
    """What became of one operator: with which operators it was written."""

    verdict: Verdict
    operators: Sequence[str] = ()
    why: str = ""


def names() -> Iterator[str]:
    """Return the operators that there are arguments for."""
    return iter(ARGUMENTS)


def is_function(name: str) -> bool:
    """Return whether an operator is a function of tensors, or of a random seed, that a model may hold."""
    definition = op_def_registry.get(name)
    if definition is None or not hasattr(tf.raw_ops, name) or re.search(_OTHER, name):
        return False
    if definition.HasField("deprecation") and definition.deprecation.version <= tf.version.GRAPH_DEF_VERSION:
        return False
    sides = (*definition.input_arg, *definition.output_arg)
    plain = all(
        not side.is_ref and side.type not in (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
        for side in sides
    )
    return plain and bool(definition.output_arg) and (not definition.is_stateful or name in ARGUMENTS)


def arguments_of(name: str) -> Mapping[str, Any] | None:
    """Return arguments of an operator: those of the table, or floats where it takes these."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    definition = op_def_registry.get(name)
    for shape in ((3, 4), (4,), (2, 3, 3, 4)):
        made = _plain(definition, shape)
        if made is None:
            return None
        try:
            getattr(tf.raw_ops, name)(**made)
        except Exception:  # of many kinds
            continue
        return made
    return None


def _plain(definition: Any, shape: tuple[int, ...]) -> dict[str, Array] | None:
    """Return an array for every operand of an operator, of its most usual type; None if it takes lists."""
    random = np.random.default_rng(3)
    types = {attr.name: _type(attr) for attr in definition.attr if attr.type == "type"}
    made: dict[str, Array] = {}
    for argument in definition.input_arg:
        dtype = tf.as_dtype(argument.type) if argument.type else types.get(argument.type_attr)
        if dtype is None or argument.number_attr or argument.type_list_attr:
            return None
        values = random.uniform(0.2, 0.9, shape)
        if dtype == tf.string:
            made[argument.name] = np.full(shape, b"a b1", object)
        elif dtype.is_integer:
            made[argument.name] = random.integers(1, 3, shape).astype(dtype.as_numpy_dtype)
        else:
            made[argument.name] = (values > 0.5 if dtype == tf.bool else values).astype(dtype.as_numpy_dtype)
    return made


def _type(attr: Any) -> Any:
    allowed = [tf.as_dtype(value) for value in attr.allowed_values.list.type]
    if not allowed or tf.float32 in allowed:
        return tf.float32
    if attr.HasField("default_value"):
        return tf.as_dtype(attr.default_value.type)
    return tf.int32 if tf.int32 in allowed else allowed[0]


def run(name: str) -> Result:
    """Convert a model of one operator, and compare it with TensorFlow on the arguments."""
    given = arguments_of(name)
    assert given is not None
    fed = [value for value in _flat(given.values()) if isinstance(value, np.ndarray)]
    try:
        concrete, expected = _in_tensorflow(name, given, fed)
    except Exception as error:  # of many kinds
        return Result(Verdict.UNTRIED, (), f"{type(error).__name__}: {error}"[:90])
    try:
        content = Converter.from_concrete_functions([concrete]).convert()
    except ConversionError as error:
        return Result(Verdict.REFUSED, (), str(error).splitlines()[0][:90])
    except Exception as error:  # a defect
        return Result(Verdict.DIFFERENT, (), f"{type(error).__name__}: {error}"[:90])
    operators = [node.op.name for graph in read(content).subgraphs for node in graph.nodes]
    try:
        got = invoke(Interpreter(model_content=content), fed)
    except Exception as error:  # a defect
        return Result(Verdict.DIFFERENT, operators[:4], f"{type(error).__name__}: {error}"[:90])
    compare = _alike if name in _DRAWN else partial(is_close, tolerance=_TOLERANCE)
    if name in _SIGNLESS:
        got, expected = list(map(np.abs, got)), list(map(np.abs, expected))
    wrong = [k for k, (g, w) in enumerate(zip(got, expected, strict=True)) if not compare(g, w)]
    why = f"results {wrong}: {str(got[wrong[0]])[:40]} for {str(expected[wrong[0]])[:40]}" if wrong else ""
    return Result(Verdict.DIFFERENT if wrong else Verdict.EQUAL, operators[:4], why)


def _in_tensorflow(name: str, given: Mapping[str, Any], fed: Sequence[Array]) -> tuple[Any, list[Array]]:
    """Return an operator as a function, and its results."""
    function = tf.function(lambda *xs: tf.nest.flatten(_called(name, given, iter(xs))), autograph=False)
    specs = [tf.TensorSpec(x.shape, tf.string if x.dtype == object else x.dtype) for x in fed]
    concrete = function.get_concrete_function(*specs)
    return concrete, [np.asarray(y) for y in concrete(*map(tf.constant, fed))]


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, list) else (value,)


def _called(name: str, given: Mapping[str, Any], fed: Iterator[Any]) -> Any:
    def operand(value: Any) -> Any:
        if isinstance(value, list):
            return [operand(part) for part in value]
        if isinstance(value, C):
            return tf.constant(value.value)
        return next(fed) if isinstance(value, np.ndarray) else value

    return getattr(tf.raw_ops, name)(**{key: operand(value) for key, value in given.items()})


def _alike(got: Array, wanted: Array) -> bool:
    """Return whether numbers of two draws may be of one distribution, by their means."""
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return False
    along = int(np.argmax(wanted.shape))
    spread = np.sqrt((got.var(along) + wanted.var(along)) / wanted.shape[along])
    return bool((np.abs(got.mean(along) - wanted.mean(along)) <= 6 * spread).all())

"""What litecl runs, operator by operator, from the tables in the code: docs/operators.md.

Types are those of the test cases, each of which is compared with LiteRT.
"""

import ast
import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import litecl.converter.lower
from litecl.cases import Case
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.kit.require import is_quantized
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import OPS
from litecl.interpreter.schema import TensorType

_PLACEHOLDERS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
_NOT_IN_TFLITE = """
    CALL CONCAT_EMBEDDINGS STABLEHLO_LOGISTIC STABLEHLO_DIVIDE STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
    STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
    STABLEHLO_ABS STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_NEGATE STABLEHLO_OR
    STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
    STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_IOTA
    STABLEHLO_DOT_GENERAL STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_TRANSPOSE STABLEHLO_CBRT
"""
NOT_IN_TFLITE = frozenset(_NOT_IN_TFLITE.split())
"""Builtin operators of the schema that LiteRT's interpreter has no kernel for."""

CUSTOM_IN_TFLITE = frozenset({"TFLite_Detection_PostProcess", "AudioSpectrogram", "Mfcc"})
"""Custom operators that LiteRT's interpreter knows."""

# Where the type that an operator works on is not that of its first input.
_MAIN = {
    "EMBEDDING_LOOKUP": 1,
    "EMBEDDING_LOOKUP_SPARSE": 4,
    "FILL": 1,
    "HASHTABLE_LOOKUP": 2,
    "ONE_HOT": 2,
    "SCATTER_ND": 1,
    "SELECT": 1,
    "SELECT_V2": 1,
    "SPARSE_TO_DENSE": 2,
    "SPLIT": 1,
    "TRANSPOSE_CONV": 2,
}


@dataclass(frozen=True)
class Row:
    """One operator. ``cpu`` and ``device`` are types, with a star where they are quantized."""

    name: str
    versions: str
    cpu: tuple[str, ...]
    device: tuple[str, ...]
    on_device: bool
    converter: bool
    cases: int
    tflite: bool


def rows() -> list[Row]:
    """Every operator that the interpreter runs, in the order of their names."""
    emitted, claimed = _emitted(), {op.name for op in CL_OPS}
    cases = defaultdict(list)
    for case in _cases():
        cases[case.op.name].append(case)
    return [
        Row(
            op.name,
            "" if op.custom else "-".join(str(n) for n in sorted({op.versions[0], op.versions[-1]})),
            _types(cases[op.name]),
            _types([case for case in cases[op.name] if op.name in claimed and case.on_device and case.device is None]),
            op.name in claimed,
            op.name in emitted,
            len(cases[op.name]),
            op.name in CUSTOM_IN_TFLITE if op.custom else op.name not in NOT_IN_TFLITE,
        )
        for op in sorted(OPS, key=lambda op: op.name.upper())
    ]


def missing() -> list[str]:
    """The builtin operators of the schema that the interpreter does not run."""
    known = {op.name for op in OPS} | _PLACEHOLDERS
    return [name for name in BUILTIN_OPERATORS if name not in known]


def markdown(table: Sequence[Row]) -> str:
    """The document."""
    lines = [_HEAD, "| operator | versions | CPU | device | converter | cases | TFLite |", "|---" * 7 + "|"]
    lines += [_line(row) for row in table]
    only = [name for name in missing() if name not in NOT_IN_TFLITE]
    neither = [name for name in missing() if name in NOT_IN_TFLITE]
    lines += ["", f"Only in TensorFlow Lite: {_names(only)}.", "", f"In neither: {_names(neither)}.", ""]
    return "\n".join(lines)


def _line(row: Row) -> str:
    device = " ".join(row.device) or _mark(row.on_device)
    parts = (
        f"`{row.name}`",
        row.versions,
        " ".join(row.cpu),
        device,
        _mark(row.converter),
        str(row.cases or ""),
        _mark(row.tflite),
    )
    return f"| {' | '.join(parts)} |"


_HEAD = """# Operators

Written by `litecl coverage --output docs/operators.md`; a test checks that it is up to date.

- **versions**: those of the operator that are understood. Operators without any are custom ones.
- **CPU**, **device**: the types of the test cases, which the interpreter and the device compute as LiteRT does; a star
  means integers with a scale and a zero point. Types that LiteRT takes without a look, and reads as others, are
  refused: all but floats for FAKE_QUANT, for example.
- **converter**: whether the converter emits it.
- **cases**: how many test cases it has. Operators without any run subgraphs or keep state, and have tests of their own.
- **TFLite**: whether LiteRT's interpreter runs it.

Indices that are out of range raise ModelError on the CPU. A kernel cannot raise: on the device GATHER, GATHER_ND and
EMBEDDING_LOOKUP take the nearest element that there is (-1 stands for the first, not for the last), and nothing outside
the tensor is read. Indices that are constant are looked at before, and left to the CPU where one is out of range. For
ONE_HOT such an index is a row without a one, on either side.
"""


def _mark(value: bool) -> str:
    return "yes" if value else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _cases() -> list[Case]:
    from litecl.cases.tables import TABLES  # makes arrays for a second: not for every command

    return [case for table in TABLES for case in table.CASES]


def _types(cases: Sequence[Case]) -> tuple[str, ...]:
    found = {}
    for case in cases:
        (graph,) = case.model().subgraphs
        place = graph.nodes[0].inputs[_MAIN.get(case.op.name, 0)] if graph.nodes[0].inputs else -1
        if place >= 0:
            spec = graph.tensors[place]
            found[spec.type, is_quantized(spec)] = f"{spec.type.name.lower()}{'*' if is_quantized(spec) else ''}"
    order = list(TensorType)
    return tuple(found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), key[1])))


def _emitted() -> set[str]:
    """The operators that the converter's lowerings name."""
    found: set[str] = set()
    for info in pkgutil.iter_modules(litecl.converter.lower.__path__):
        module = importlib.import_module(f"litecl.converter.lower.{info.name}")
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            value: object = None
            if isinstance(node, ast.Name):
                value = getattr(module, node.id, None)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                value = getattr(getattr(module, node.value.id, None), node.attr, None)
            if isinstance(value, Op | ControlOp):
                found.add(value.name)
    return found

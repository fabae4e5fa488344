"""Generates docs/operators.md, the operators that litecl runs.

Derived from the cases (``litecl.cases``), which tests compare with LiteRT, the delegate's claims on them, the
converter's lowerings, and results of ``litecl verify``.
"""

import importlib
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader
from types import CodeType, ModuleType

import litecl.converter.lower
import litecl.interpreter.ops
from litecl.cases import Case
from litecl.delegate.claim.control import CONTROL_OPS, VARIABLE_OPS
from litecl.delegate.claim.region import FOLDED
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.file.tables import BUILTIN_OPERATORS
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import every_op
from litecl.interpreter.schema import TensorType
from litecl.verify.catalogue import named_cases
from litecl.verify.check import main_input, types_of
from litecl.verify.in_tflite import CUSTOM_IN_TFLITE, NOT_IN_TFLITE
from litecl.verify.record import PASS, REFUSED, Result, labels
from litecl.verify.refusals import RefusedOption, by_reason, converter_refusals, device_refusal, refused_options

_PLACEHOLDERS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
_OF_ALL = ("input ", "output ", "type ", "quantized")  # reasons that the type columns already show


@dataclass(frozen=True)
class Row:
    """One operator.

    cpu, device: the types of its cases, with a star if quantized. cpu_ranks, device_ranks: of the operand with this
    type, as in "0-5". refused: why the device leaves some cases to the CPU, other than for their types. options:
    refused values of its options. verified: by verified device, how many checks passed of those that it runs.
    """

    name: str
    versions: str
    cpu: tuple[str, ...]
    cpu_ranks: str
    device: tuple[str, ...]
    device_ranks: str
    on_device: bool
    refused: tuple[str, ...]
    options: tuple[RefusedOption, ...]
    converter: bool
    cases: int
    tflite: bool
    verified: Mapping[str, str]


def rows(results: Sequence[Result] = ()) -> list[Row]:
    """Return every operator that the interpreter runs, sorted by name."""
    emitted, claimed, verified = (
        _emitted(),
        {op.name for op in CL_OPS} | {op.name for op in (*CONTROL_OPS, *VARIABLE_OPS)},
        _verified(results),
    )
    cases: dict[str, list[tuple[Case, str | None]]] = defaultdict(list)
    for case in named_cases().values():
        cases[case.op.name].append((case, device_refusal(case)))
    return [
        _row(op, cases[op.name], op.name in claimed, op.name in emitted, verified.get(op.name, {}))
        for op in sorted(every_op(), key=lambda op: op.name.upper())
    ]


def _row(
    op: Op | ControlOp,
    cases: Sequence[tuple[Case, str | None]],
    on_device: bool,
    emitted: bool,
    verified: Mapping[str, str],
) -> Row:
    taken = [case for case, refusal in cases if refusal is None]
    refused = {reason for _, reason in cases if reason not in (None, FOLDED) and on_device}
    return Row(
        op.name,
        "" if op.custom else "-".join(str(n) for n in sorted({op.versions[0], op.versions[-1]})),
        _types([case for case, _ in cases]),
        _ranks([case for case, _ in cases]),
        _types(taken),
        _ranks(taken),
        on_device,
        tuple(sorted(reason for reason in refused if reason and not reason.startswith(_OF_ALL))),
        refused_options([case for case, _ in cases], on_device=on_device),
        emitted,
        len(cases),
        op.name in CUSTOM_IN_TFLITE if op.custom else op.name not in NOT_IN_TFLITE,
        verified,
    )


def _verified(results: Sequence[Result]) -> Mapping[str, Mapping[str, str]]:
    """Return by operator and device how many checks passed of those not refused."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    devices = [device for result in results for device in result.devices]
    for label, device in zip(labels(results), devices, strict=True):
        for row in device.rows:
            counts[row.op][label][row.status] += row.checks
    return {
        op: {
            name: f"{statuses[PASS]}/{statuses.total() - statuses[REFUSED]}"
            for name, statuses in devices.items()
            if statuses.total() > statuses[REFUSED]
        }
        for op, devices in counts.items()
    }


def missing() -> list[str]:
    """Return the schema's builtin operators and LiteRT's custom ones that the interpreter doesn't run."""
    known = {op.name for op in every_op()} | _PLACEHOLDERS
    return [name for name in (*BUILTIN_OPERATORS, *sorted(CUSTOM_IN_TFLITE)) if name not in known]


COLUMNS = ("operator", "versions", "CPU", "ranks", "device", "ranks", "converter", "cases", "TFLite")


def devices_of(table: Sequence[Row]) -> tuple[str, ...]:
    """Return the verified devices."""
    return tuple(dict.fromkeys(name for row in table for name in row.verified))


def cells(row: Row, devices: Sequence[str]) -> tuple[str, ...]:
    """Return a row's cells, for ``COLUMNS`` and devices."""
    return (
        row.name,
        row.versions,
        " ".join(row.cpu),
        row.cpu_ranks,
        " ".join(row.device) or _mark(row.on_device),
        row.device_ranks,
        _mark(row.converter),
        str(row.cases or ""),
        _mark(row.tflite),
        *(row.verified.get(name, "") for name in devices),
    )


def markdown(table: Sequence[Row]) -> str:
    """Return the document."""
    devices = devices_of(table)
    columns = (*COLUMNS, *devices)
    lines = [_HEAD, _line(columns), "|---" * len(columns) + "|"]
    for row in table:
        name, *others = cells(row, devices)
        lines.append(_line((f"`{name}`", *others)))
    only = [name for name in missing() if name not in NOT_IN_TFLITE]
    neither = [name for name in missing() if name in NOT_IN_TFLITE]
    lines += [
        "",
        f"Only in TensorFlow Lite: {_names(only)}.{_ONLY}",
        "",
        f"In neither: {_names(neither)}.",
        "",
        _REFUSED,
    ]
    lines += [_line((f"`{row.name}`", "; ".join(row.refused))) for row in table if row.refused]
    lines += ["", _OPTIONS]
    lines += [
        _line((f"`{row.name}`", f"`{o.option}`", o.shown, o.where, o.reason)) for row in table for o in row.options
    ]
    lines += ["", _CONVERTER]
    lines += [_line((_some(names), words)) for names, words in by_reason(converter_refusals())]
    return "\n".join([*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_HEAD = """# Operators

Written by `litecl coverage --output docs/operators.md`; a test checks that it is up to date. `litecl coverage --results
FILE.json` adds what `litecl verify -o FILE.json` found on a device, as in
[devices](devices.md#verified-devices).

- **versions**: the supported versions of the operator. Custom operators have none.
- **CPU**, **device**: the types and ranks of the test cases, in which interpreter and device match LiteRT; a star means
  integers with a scale and a zero point. litecl refuses types that LiteRT accepts unchecked and reads as others, such
  as all but floats for FAKE_QUANT.
- **converter**: the converter emits the operator.
- **cases**: the number of test cases. Operators without any run subgraphs or keep state, and have their own tests.
- **TFLite**: LiteRT's interpreter runs the operator, by its own kernels or by XNNPACK, its default.

[Differences from LiteRT](differences.md) lists operators whose results differ.

Indices out of range raise ModelError on the CPU. A kernel cannot raise: on the device GATHER, GATHER_ND and
EMBEDDING_LOOKUP take the nearest existing element (-1 means the first, not the last) and read nothing outside the
tensor. Constant indices are checked ahead, and the CPU runs a node with one out of range. For ONE_HOT such an index is
a row without a one, on either side.
"""

_ONLY = """ These are
custom operators of language models, which LiteRT runs by XNNPACK or if a program registers them. litecl refuses a model
with one (UnsupportedOp) unless `Interpreter(custom_ops=...)` defines it; composites of these names run."""

_REFUSED = """## Refused by the device

For every operator, the device refuses types not listed above, empty tensors, tensors with 2**31 or more elements, and
shapes that are known only at run time. The delegation report gives these further reasons:

| operator | why |
|---|---|"""

_OPTIONS = """## Refused options

Every value of every enumerated option was tried on cases of the operator. A value that the CPU refuses raises
ModelError or ShapeError; if only the device refuses it, the CPU runs the node. All other values are supported.

| operator | option | values | refused by | why |
|---|---|---|---|---|"""

_CONVERTER = """## Refused by the converter

The converter refuses TensorFlow operators without a lowering by name, with an alternative. Lowerings refuse nodes that
TensorFlow Lite cannot express, and unknown ranks that they depend on. One error lists everything refused in a model,
with the user's source lines.

| TensorFlow | why |
|---|---|"""
_NAMED = 8


def _some(names: Sequence[str]) -> str:
    """Return names for display; of a long list only the first and the number of others."""
    more = f" and {len(names) - 1} more" if len(names) > _NAMED else ""
    return _names(names[:1] if more else names) + more


def _mark(value: bool) -> str:
    return "yes" if value else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _types(cases: Sequence[Case]) -> tuple[str, ...]:
    order = [type_.name.lower() for type_ in TensorType]
    names = {types_of(case).partition(" x ")[0] for case in cases} - {""}
    return tuple(sorted(names, key=lambda name: (order.index(name.rstrip("*")), name)))


def _ranks(cases: Sequence[Case]) -> str:
    ranks = {x.ndim for case in cases if (x := main_input(case)) is not None}
    return "-".join(str(rank) for rank in sorted({min(ranks), max(ranks)})) if ranks else ""


def _emitted() -> set[str]:
    """Return the names of operators in the converter's lowerings: in tables and in functions."""
    infos = pkgutil.iter_modules(litecl.converter.lower.__path__)
    modules = [importlib.import_module(f"litecl.converter.lower.{info.name}") for info in infos]
    return {op.name for module in modules for op in emitted_by(module)}


def emitted_by(module: ModuleType) -> Iterator[Op | ControlOp]:
    """Yield the operators that a lowering module uses."""
    assert module.__spec__ is not None and isinstance(module.__spec__.loader, InspectLoader)
    code = module.__spec__.loader.get_code(module.__name__)
    names = {*_names_in(code)} if code is not None else set()
    for value in vars(module).values():
        yield from _held(value)
        if isinstance(value, ModuleType) and value.__name__.startswith(litecl.interpreter.ops.__name__):
            yield from (op for name in names if isinstance(op := getattr(value, name, None), Op | ControlOp))


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that code uses, including its inner functions."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


def _held(value: object) -> Iterator[Op | ControlOp]:
    if isinstance(value, Op | ControlOp):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _held(item)

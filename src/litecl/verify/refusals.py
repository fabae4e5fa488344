"""Finds refused options, with reasons, by trying every value of every option on the cases.

Tries options with a fixed set of values (enumerations, flags) on cases of the operator, one after another. A value is
refused if all of them refuse it.
"""

import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any

import litecl.converter.lower as lowerings
from litecl.cases import Case
from litecl.delegate.analysis.explicit import explicit
from litecl.delegate.analysis.halves import widened
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.partition import why_not
from litecl.delegate.claim.region import FOLDED
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.run.shapes import propagate
from litecl.perf.feeds import run_on
from litecl.verify.check import types_of

_MANY = 10  # more refused values are shown as all but the accepted ones
_CASES = 3  # tried per type
_MESSAGES = {"error": "{}", "known": "its {} must be constant at conversion"}
"""The converter builder's methods that refuse, with their message around the given text."""
_LOWER = lowerings.__name__


@dataclass(frozen=True)
class RefusedOption:
    """Values of an option that every case refuses. where: "CPU" or "device". reason: for the first.

    others: values not refused there.
    """

    option: str
    values: tuple[str, ...]
    where: str
    reason: str
    others: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The values as text."""
        return f"all but {', '.join(self.others)}" if len(self.values) > _MANY else ", ".join(self.values)


def device_refusal(case: Case) -> str | None:
    """Return why a device leaves a case to the CPU, or None."""
    model = case.model()
    fed = {0: [feed.shape for feed in case.feeds]}
    return why_not(0, 0, widened(explicit(model, propagate(model, fed))), CLOptions())


def refused_options(cases: Sequence[Case], *, on_device: bool) -> tuple[RefusedOption, ...]:
    """Return the option values that the interpreter or the device refuses for an operator. cases: the operator's."""
    rows: dict[tuple[str, str], RefusedOption] = {}
    every: dict[str, list[str]] = {}
    choices = [*_values(cases)]
    some = _some(cases) if choices else []
    for option, value in choices:
        where, reason = _refusal(_with(cases, some, option, value), on_device=on_device)
        shown = value.name if isinstance(value, IntEnum) else str(value)
        every.setdefault(option, []).append(shown)
        if where:
            before = rows.get((option, where), RefusedOption(option, (), where, reason))
            rows[option, where] = replace(before, values=(*before.values, shown))
    return tuple(
        replace(row, others=tuple(value for value in every[row.option] if value not in row.values))
        for row in rows.values()
    )


def _refusal(cases: Sequence[Case], *, on_device: bool) -> tuple[str, str]:
    """Return where all cases are refused, and why the first one is; "" if any is accepted."""
    on_cpu, left = list[str](), list[str]()
    for case in cases:  # one accepted case decides: most are, so few cases run
        if why := _cpu_refusal(case):
            on_cpu.append(why)
            continue
        reason = device_refusal(case) if on_device else None
        if not reason or reason == FOLDED:
            return "", ""
        left.append(reason)
    return ("device", left[0]) if left else ("CPU", on_cpu[0]) if on_cpu else ("", "")


def _values(cases: Sequence[Case]) -> Iterator[tuple[str, Any]]:
    """Yield every value of every enumeration and flag."""
    options = cases[0].options if cases else None
    if not is_dataclass(options):
        return
    for field in fields(options):
        value = getattr(options, field.name)
        if isinstance(value, bool | IntEnum):
            yield from ((field.name, other) for other in ((False, True) if isinstance(value, bool) else type(value)))


def _some(cases: Sequence[Case]) -> list[Case]:
    """Return a few cases of every type."""
    by_types: dict[str, list[Case]] = {}
    for case in cases:
        by_types.setdefault(types_of(case), []).append(case)
    return [case for group in by_types.values() for case in group[:_CASES]]


def _with(cases: Sequence[Case], some: Sequence[Case], option: str, value: Any) -> list[Case]:
    """Return cases with an option's value: those that have it, or else ``some`` with the option set."""
    own = [case for case in cases if getattr(case.options, option, None) == value]
    if own:
        return own[:_CASES]
    return [replace(case, options=replace(case.options, **{option: value})) for case in some]


def _cpu_refusal(case: Case) -> str | None:
    try:
        run_on(Interpreter(case.model()), case.feeds)
    except LiteclError as error:
        return str(error).partition("\n")[0]
    return None


@cache
def converter_refusals() -> Mapping[str, tuple[str, ...]]:
    """Return why the converter's lowerings may refuse TensorFlow operators, by operator name."""
    reasons_of = {name: tuple(dict.fromkeys(_reasons(how, set()))) for name, how in lowerings.LOWERINGS.items()}
    return {name: reasons for name, reasons in sorted(reasons_of.items()) if reasons}


def _reasons(how: Any, seen: set[int]) -> Iterator[str]:
    """Yield the refusal messages of a lowering and of the lowering functions that it calls."""
    if isinstance(how, partial):
        how = how.func
    if not isinstance(how, FunctionType) or id(how) in seen or not how.__module__.startswith(_LOWER):
        return
    seen.add(id(how))
    for code in _codes(how.__code__):
        yield from _messages(code)
        for name in code.co_names:
            yield from _reasons(how.__globals__.get(name), seen)
    for cell in how.__closure__ or ():
        yield from _reasons(cell.cell_contents, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _messages(code: CodeType) -> Iterator[str]:
    """Yield the refusal messages in code, with "..." for formatted values."""
    exception: str | None = None
    parts: list[str] = []
    lines = list(dis.get_instructions(code))
    for line, after in zip(lines, [*lines[1:], lines[-1]], strict=True):
        if line.argval in _MESSAGES and line.opname.startswith(("LOAD_METHOD", "LOAD_ATTR")):
            exception, parts = str(line.argval), []
        elif exception is None:
            continue
        elif line.opname == "LOAD_CONST" and isinstance(line.argval, str) and not after.opname.startswith("BINARY"):
            parts.append(line.argval)
        elif line.opname.startswith("FORMAT"):
            parts.append("...")
        elif line.opname.startswith("CALL"):
            if parts:
                yield _MESSAGES[exception].format("".join(parts))
            exception = None


def by_reason(refusals: Mapping[str, Iterable[str]]) -> list[tuple[tuple[str, ...], str]]:
    """Group operators by their refusal reasons, joined as text."""
    groups: dict[str, list[str]] = {}
    for name, reasons in refusals.items():
        groups.setdefault("; ".join(reasons), []).append(name)
    return [(tuple(names), words) for words, names in sorted(groups.items(), key=lambda item: item[1][0])]

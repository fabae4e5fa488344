"""All checks: the cases of operators with a device kernel, and scenarios."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain

from litecl.cases import Case
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.errors import ModelError
from litecl.perf.verify.check import Check, of_case, types_of

_QUICK_OF_A_KIND = 2  # cases of an operator and a type


@cache
def catalogue() -> tuple[Check, ...]:
    """Return all checks, scenarios last."""
    from litecl.perf.verify.scenarios import SCENARIOS

    named = named_cases()
    quick = _quick(named)
    cases = (of_case(case, name, quick=name in quick) for name, case in named.items() if case.op in CL_OPS)
    return (*cases, *SCENARIOS)


def selected(ops: Collection[str] = (), *, quick: bool = False, only: str | None = None) -> tuple[Check, ...]:
    """Return the checks of these operators (all, if none is named), or the one of a name. Raises ModelError for none.

    ops: operators, or kinds of scenarios, in capitals or not.
    """
    checks = catalogue()
    if only is not None:
        found = tuple(check for check in checks if check.name == only)
        if not found:
            raise ModelError(f"no check is named {only!r}; `litecl verify --list` names them")
        return found
    wanted = {op.upper() for op in ops}
    unknown = wanted - {check.labels.op.upper() for check in checks}
    if unknown:
        raise ModelError(f"no check of {', '.join(sorted(unknown))}: no device kernel computes it")
    return tuple(c for c in checks if (not wanted or c.labels.op.upper() in wanted) and (c.quick or not quick))


def named_cases() -> dict[str, Case]:
    """Return every case of every operator under a name of its own.

    Cases of one operator that share a name have their table's added, and a number where they share that too.
    """
    from litecl.cases.tables import TABLES  # makes arrays for a second

    cases = [(table.__name__.rpartition(".")[2], case) for table in TABLES for case in table.CASES]
    shared = {name for name, count in Counter(_name(case) for _, case in cases).items() if count > 1}
    named: dict[str, Case] = {}
    for table, case in cases:
        name = _name(case) + (f" ({table})" if _name(case) in shared else "")
        while name in named:
            name += "'"
        named[name] = case
    return named


def _name(case: Case) -> str:
    return f"{case.op.name}/{case.name}"


def _quick(named: dict[str, Case]) -> set[str]:
    """Return the names of the cases of a quick run: the first and the last of every operator and type."""
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, case in named.items():
        if case.op in CL_OPS and case.device is None and case.on_device:
            kinds[case.op.name, types_of(case)].append(name)
    return set(chain.from_iterable(_ends(names) for names in kinds.values()))


def _ends(names: Sequence[str]) -> Iterable[str]:
    half = _QUICK_OF_A_KIND // 2
    return (*names[:half], *names[-half:])

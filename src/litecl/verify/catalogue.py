"""All checks: the cases of operators with a device kernel, and scenarios."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from functools import cache

from litecl.cases import Case
from litecl.delegate.naming import close_names, did_you_mean
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.errors import ModelError
from litecl.verify.check import Check, edge_of, of_case, types_of


@cache
def catalogue() -> dict[str, Check]:
    """Return all checks by name, starting with scenarios, which take longest."""
    from litecl.verify.scenarios import SCENARIOS

    cases = {name: of_case(case, name) for name, case in named_cases().items() if case.op in CL_OPS}
    return {check.name: check for check in SCENARIOS} | cases


def selected(ops: Collection[str] = (), *, quick: bool = False, only: str | None = None) -> tuple[Check, ...]:
    """Return the checks of these operators (all by default), or the one named ``only``. Raises ModelError if unknown.

    ops: operators or kinds of scenarios, in any case.
    """
    return selected_of(catalogue(), ops, quick_cases() if quick else None, only)


def selected_of(
    checks: Mapping[str, Check], ops: Collection[str], quick: Collection[str] | None, only: str | None
) -> tuple[Check, ...]:
    """Filter checks like ``selected``. quick: the names of cases in a quick run."""
    if only is not None:
        if only not in checks:
            raise ModelError(f"there is no check {only!r}; `litecl verify --list` names them")
        return (checks[only],)
    wanted = {op.upper() for op in ops}
    unknown = wanted - {check.op.upper() for check in checks.values()}
    if unknown:
        known = {check.op for check in checks.values()}
        similar = did_you_mean([name for op in sorted(unknown) for name in close_names(op, known, 1)])
        raise ModelError(f"no check for {', '.join(sorted(unknown))}: no device kernel computes it{similar}")
    return tuple(
        check
        for name, check in checks.items()
        if (not wanted or check.op.upper() in wanted) and (quick is None or check.quick or name in quick)
    )


@cache
def named_cases() -> dict[str, Case]:
    """Return every case of every operator under a unique name.

    If cases of an operator share a name, their table's name is appended, and apostrophes if they share that too.
    """
    from litecl.cases.tables import TABLES  # slow: it creates arrays for a second

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


@cache
def quick_cases() -> frozenset[str]:
    """Return the names of the cases in a quick run.

    These are the first and last of every operator and type, and the first for every kind of special size or value.
    Compiling takes most of the time, and cases of one operator and type share programs.
    """
    kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, case in named_cases().items():
        if case.op in CL_OPS and case.device is None and case.on_device:
            kinds[case.op.name, types_of(case)].append(name)
            kinds[case.op.name, types_of(case), edge_of(case.inputs)].append(name)
    ends = (name for kind, names in kinds.items() for name in (names[0], names[-1 if len(kind) == 2 else 0]))
    return frozenset(ends)

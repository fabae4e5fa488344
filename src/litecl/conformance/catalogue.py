"""All checks for a runtime: every operator's cases, known differences, scenarios, and random graphs."""

from collections.abc import Collection
from functools import cache, partial

from litecl.cases import litert_faults
from litecl.conformance import variables
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Model
from litecl.random_graphs.graphs import Drawn, numbered
from litecl.verify.catalogue import named_cases, quick_cases, selected_of
from litecl.verify.check import Check, Labels, Step, of_case
from litecl.verify.scenarios import SCENARIOS

GRAPH = "graph"
_FAMILIES = 6  # per graph


@cache
def catalogue() -> dict[str, Check]:
    """Return all checks by name, except random graphs, sorted by operator."""
    checks = [of_case(case, name) for name, case in named_cases().items()]
    checks += [of_case(case, f"{case.op.name}/known: {case.name}") for case in litert_faults.CASES_OF_FAULTS]
    checks += variables.CHECKS
    checks += [check for check in SCENARIOS if not check.options]  # options only apply to litecl's delegate
    return {check.name: check for check in sorted(checks, key=lambda check: check.op)}


def selected(
    ops: Collection[str] = (), *, quick: bool = False, only: str | None = None, graphs: int = 0, seed: int = 0
) -> tuple[Check, ...]:
    """Return the checks of these operators (all by default), or the one named ``only``. Raises ModelError if unknown.

    graphs: how many random graphs to add, by ``seed``.
    """
    drawn = {check.name: check for check in (random_graph(seed, number) for number in range(graphs))}
    if only is not None and (named := named_graph(only)) is not None:
        drawn[only] = named
    return selected_of(catalogue() | drawn, ops, _quick() | {*drawn} if quick else None, only)


@cache
def _quick() -> frozenset[str]:
    """Return the names of the quick cases, and of the first check of every operator."""
    first: dict[str, str] = {}
    for name, check in catalogue().items():
        first.setdefault(check.op, name)
    return quick_cases() | {*first.values()}


def check_of(name: str) -> Check:
    """Return a check by name. Raises ModelError if there is none."""
    check = catalogue().get(name) or named_graph(name)
    if check is None:
        raise ModelError(f"there is no check {name!r}; `litecl verify --runtime litert --list` names them")
    return check


def named_graph(name: str) -> Check | None:
    """Return the random graph for a name ``graph/SEED/NUMBER``; None for other names."""
    kind, *numbers = name.split("/")
    if kind != GRAPH or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        return None
    return random_graph(int(numbers[0]), int(numbers[1]))


def random_graph(seed: int, number: int) -> Check:
    """Return a check of a random graph, reproducible by seed and number. Numbers alternate between themes."""
    drawn = cache(partial(numbered, seed, number, _FAMILIES))
    return Check(
        f"{GRAPH}/{seed}/{number}",
        GRAPH,
        lambda: _labels(drawn()),
        lambda: drawn().model,
        lambda: [Step(call.feeds, call.reset) for call in drawn().calls if call.entry == 0],
    )


def _labels(drawn: Drawn) -> Labels:
    main = drawn.model.subgraphs[0]
    types = " ".join(dict.fromkeys(main.tensors[t].type.name.lower() for t in main.inputs))
    shapes = " ".join(str(list(main.tensors[t].static_shape)).replace(", ", ",") for t in main.inputs)
    return Labels(GRAPH, 0, types, shapes, _operators(drawn.model))


def _operators(model: Model) -> str:
    return " ".join(sorted({node.op.name for graph in model.subgraphs for node in graph.nodes}))

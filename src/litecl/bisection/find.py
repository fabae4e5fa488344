"""``litecl.bisect``: finds a model's first operator that a runtime computes wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

from litecl.bisection.runners import DEVICE, EMULATED, INTERPRETER, Runner
from litecl.bisection.search import Fault, Growth, Search, Tick
from litecl.bisection.survey import Survey, survey
from litecl.bisection.tolerance import Error, Tolerance, worst
from litecl.delegate.claim.kept import kept_in_float
from litecl.halves import Mode
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.reader import content_of, read
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.html import block, paragraph, table
from litecl.interpreter.numbers import Numbers
from litecl.perf.feeds import named_inputs
from litecl.perf.peers.litert import LITERT_REFERENCE, peer_name

Verdict = Literal["right", "fault", "rounding"]

_IN_FLOATS, _IN_HALVES = 1e-4, 0.01
"""Default tolerances for floats, relative to the largest magnitude in their tensor."""


@dataclass(frozen=True)
class Bisection:
    """The comparison of a model on a suspect and on a reference runtime.

    verdict: "right" if the outputs are; "fault" if some nodes are wrong given right inputs; "rounding" if every node is
    right by itself, so small errors have grown. output: the model's worst output, None if none is wrong. growth: for
    "rounding", the error after more and more nodes. notes: the parts that could not be checked, and why. halves: the
    effect of half precision on each operator, if requested. numbers: as for ``Interpreter``.
    """

    suspect: str
    reference: str
    verdict: Verdict
    tolerance: Tolerance
    nodes: int
    output: Error | None = None
    fault: Fault | None = None
    growth: tuple[Growth, ...] = ()
    notes: tuple[str, ...] = ()
    halves: Survey | None = None
    numbers: Numbers = "reference"

    def _repr_html_(self) -> str:
        """Return the verdict as HTML for notebooks."""
        fault = () if self.fault is None else zip(self.fault.nodes, self.fault.ops, strict=True)
        growth = ((each.node, each.op, f"{each.size:.3g}") for each in self.growth)
        return block(
            paragraph(f"{self.suspect} against {self.reference}: {self.verdict}"),
            *(() if self.output is None else (paragraph(f"output {self.output.output}: {self.output.text}"),)),
            table(("wrong given right inputs", "operator"), fault),
            table(("node", "operator", "error behind it"), growth),
            *map(paragraph, self.notes),
        )


def bisect(
    model: str | PathLike[str] | bytes,
    suspect: str = DEVICE,
    reference: str = INTERPRETER,
    inputs: Mapping[str, Array] | None = None,
    *,
    fp16: Mode | None = None,
    seed: int = 0,
    relative: float | None = None,
    steps: int | None = None,
    numbers: Numbers = "reference",
    tick: Tick = lambda text: None,
    **options: Any,
) -> Bisection:
    """Run a model on two runtimes, and find the first operator whose result is wrong given right inputs.

    suspect, reference: "device", a device's name, "litert", "litert-reference", "interpreter", or an emulated device
    with 16-bit floats: "fp16-storage", "fp16-sums" or "fp16-both". inputs: by name; the others are random, by ``seed``.
    fp16: use this emulation as suspect, and survey all operators (the result's ``halves``). relative: tolerance for
    floats, relative to the largest magnitude in the tensor, by default 1e-4, or 0.01 in halves; steps: tolerance for
    integers, by default 0 for a litecl device and 1 for other suspects. numbers: of all that litecl runs. tick: called
    with a description of each run. options: of ``CLDelegate``; ``dynamic_range`` applies to everything that litecl
    runs, by default matching the other runtime: "reference" for litert-reference, else "asymmetric".

    Raises LiteclError if either runtime can't run the model, ModelError for unknown input names, and for a model in
    place of a runtime.
    """
    _require_runtimes(model, suspect, reference)
    content = bytes(content_of(model))
    parsed = read(model)
    suspect = suspect if fp16 is None else _emulated(fp16, suspect)
    mode = "reference" if LITERT_REFERENCE in map(peer_name, (suspect, reference)) else "asymmetric"
    options = {"dynamic_range": mode, **_with_names(parsed, options)}
    suspected, right = (Runner(name, options, numbers) for name in (suspect, reference))
    if steps is None:
        steps = int(not suspected.is_device)
    if relative is None:
        relative = _IN_HALVES if {suspect, reference} & {*EMULATED} else _IN_FLOATS
    search = Search(suspected, right, Tolerance(relative, steps), tick)
    labelled = named_inputs(Interpreter(parsed).get_input_details(), inputs or {}, seed)
    given = [*labelled.values()]
    kept = options.get("keep_float") or ()
    halves = None if fp16 is None else survey(content, parsed, labelled, fp16, search.tolerance, kept, tick)
    tick("the whole model")
    values, whole = search.values(parsed, 0, given), search.whole(parsed, given)
    error = worst(suspected.prepare(whole)(given), right.prepare(whole)(given), search.tolerance)
    nodes = len(parsed.subgraphs[0].nodes)
    bisection = Bisection(suspect, reference, "right", search.tolerance, nodes, error, halves=halves, numbers=numbers)
    if error is None:
        return bisection
    fault = search.fault(parsed, 0, values)
    if fault is not None:
        return replace(bisection, verdict="fault", fault=fault, notes=tuple(search.notes))
    growth = tuple(search.growth(parsed, 0, values))
    return replace(bisection, verdict="rounding", growth=growth, notes=tuple(search.notes))


def _require_runtimes(model: Any, *names: str) -> None:
    for name in names:
        if str(name).lower().endswith(".tflite"):
            first = "MODEL" if isinstance(model, bytes) else model
            raise ModelError(
                f"{name!r} is a model, and what is compared here are runtimes; to compare two models layer by layer: "
                f"litecl diff {first} {name}"
            )


def _emulated(fp16: str, suspect: str) -> str:
    """Return an emulation's name. Raises ModelError for an unknown mode, or if another suspect is given too."""
    name = f"fp16-{fp16}"
    if name not in EMULATED:
        raise ModelError(f"fp16: expected one of {', '.join(EMULATED.values())}, got {fp16!r}")
    if suspect not in (DEVICE, name):
        raise ModelError(f"fp16={fp16!r} is a suspect itself, got {suspect!r} too: pass one of them")
    return name


def _with_names(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with ``keep_float`` by result names, which also hold in parts of the model."""
    if not options.get("keep_float"):
        return {**options}
    kept = kept_in_float(model, options["keep_float"])
    specs = [model.subgraphs[i].tensors[t] for i, n in kept for t in model.subgraphs[i].nodes[n].outputs]
    return {**options, "keep_float": sorted({spec.name for spec in specs} - {""})}

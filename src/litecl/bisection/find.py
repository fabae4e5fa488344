"""``litecl.bisect``: the first operator of a model that a runtime computes wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from litecl.bisection.runners import DEVICE, INTERPRETER, Runner
from litecl.bisection.search import Fault, Growth, Search, Tick
from litecl.bisection.tolerance import Error, Tolerance, worst
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from litecl.perf.feeds import labels, named_inputs

Verdict = Literal["right", "fault", "rounding"]


@dataclass(frozen=True)
class Bisection:
    """A model on a suspect and on a reference.

    verdict: "right" if the outputs are; "fault" if some nodes are wrong although they are given right inputs;
    "rounding" if every node is right by itself, so that small errors have grown. output: the worst output of the model,
    None if none is wrong. growth: the error behind more and more nodes, where it is rounding. notes: what could not be
    looked at, and why.
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


def bisect(
    model: str | PathLike[str] | bytes,
    suspect: str = DEVICE,
    reference: str = INTERPRETER,
    inputs: Mapping[str, Array] | None = None,
    *,
    seed: int = 0,
    relative: float = 1e-4,
    steps: int | None = None,
    tick: Tick = lambda text: None,
    **options: Any,
) -> Bisection:
    """Run a model on two runtimes, and find the first operator whose result is wrong given right inputs.

    suspect, reference: "device", a device's name, "litert", "litert-ref" or "interpreter". inputs: by name; those not
    given are random, by ``seed``. relative: how far a float may be off, relative to the largest magnitude in its
    tensor; steps: how many steps an integer may be off, 0 for a device of litecl's and 1 for other suspects by default.
    tick: is told what is being run. options: of ``CLDelegate``.

    Raises LiteclError where the model runs on neither, ModelError for names that no input has.
    """
    content = model if isinstance(model, bytes) else Path(model).read_bytes()
    suspected, right = Runner(suspect, options), Runner(reference, options)
    if steps is None:
        steps = int(not suspected.is_device)
    search = Search(suspected, right, Tolerance(relative, steps), tick)
    parsed = read(content)
    given = _given(content, inputs or {}, seed)
    tick("the whole model")
    values, whole = search.values(parsed, 0, given), search.whole(parsed, given)
    error = worst(suspected.prepare(whole)(given), right.prepare(whole)(given), search.tolerance)
    found = Bisection(suspect, reference, "right", search.tolerance, len(parsed.subgraphs[0].nodes), error)
    if error is None:
        return found
    fault = search.fault(parsed, 0, values)
    if fault is not None:
        return replace(found, verdict="fault", fault=fault, notes=tuple(search.notes))
    growth = tuple(search.growth(parsed, 0, values))
    return replace(found, verdict="rounding", growth=growth, notes=tuple(search.notes))


def _given(content: bytes, inputs: Mapping[str, Array], seed: int) -> Sequence[Array]:
    """Return a value for every input, in the model's order. Raises ModelError for a name that no input has."""
    details = Interpreter(model_content=content).get_input_details()
    values = named_inputs(details, inputs, seed)
    return [values[name] for name in labels(details)]

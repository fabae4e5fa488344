"""Runs one check on the interpreter and twice on the device, and compares."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from litecl.comparison import Difference, difference, same_bits
from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.report import summary
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.numbers import Numbers
from litecl.perf.resident import resident_bytes
from litecl.perf.timing import in_turns
from litecl.verify.check import Check, Step
from litecl.verify.goldens import Goldens
from litecl.verify.record import FAIL, PASS, REFUSED, SLOWER, Row

_TIMED = 5  # invokes
_GROWTH_BYTES = 32 << 20  # allowed memory growth over many rounds: allocators keep some

Outputs = list[list[Array]]
"""The model's outputs, then its variables, after each step."""


@dataclass(frozen=True)
class Settings:
    """Where and how checks run. device: an index into ``devices()``. timed: measure device and CPU times.

    numbers: as for ``Interpreter``.
    """

    device: int
    cache_dir: str | None
    timed: bool = False
    numbers: Numbers = "reference"


def judge(check: Check, settings: Settings, goldens: Goldens, prepared: Callable[[Sequence[str]], None]) -> Row:
    """Run a check. prepared: called with the device's kernels before they run."""
    start_s = time.perf_counter()
    row = Row(check.name, **asdict(check.labels), status=PASS)
    try:
        row = _judged(check, row, settings, goldens, prepared)
    except Exception as error:  # report whatever a driver or kernel raises
        row = replace(row, status=FAIL, reason=_words(error))
    return replace(row, seconds=round(time.perf_counter() - start_s, 3))


def _judged(
    check: Check, row: Row, settings: Settings, goldens: Goldens, prepared: Callable[[Sequence[str]], None]
) -> Row:
    steps = check.steps()
    interpreter = _interpreter(check, settings)
    _allocate(interpreter, steps[0])
    report = DelegationReport.of(interpreter)
    if not report.claimed:
        reason = next((node.reason for node in report.nodes), "no nodes")
        return replace(row, status=REFUSED, reason=reason, unexpected=check.wanted)
    row = replace(row, kernels=kernels_of(report))
    prepared(row.kernels)
    mode = check.options.get("dynamic_range", "reference")
    cpu = Interpreter(check.model(), dynamic_range=mode, numbers=settings.numbers)
    wanted, row = _play(cpu, steps), replace(row, reference="litecl's interpreter")
    is_litert = mode == settings.numbers == "reference"
    golden = goldens.of(check.name, check.model(), steps) if is_litert else None
    if golden is not None:
        row = replace(row, reference=f"LiteRT {goldens.version}")
        departs = _compare(check, wanted, golden).reason
        if departs:
            return replace(row, status=FAIL, reason=f"the interpreter on this machine: {departs}")
        wanted = golden
    row = _compared(row, _compare(check, _on_device(check, interpreter, settings, steps), wanted))
    return _timed(row, interpreter, cpu) if settings.timed and row.status == PASS else row


def _compared(row: Row, comparison: "_Comparison") -> Row:
    return replace(
        row,
        status=FAIL if comparison.reason else PASS,
        reason=comparison.reason,
        relative=comparison.relative,
        ulp=comparison.ulp,
        bound=comparison.bound,
        bound_source=comparison.source,
    )


def _timed(row: Row, interpreter: Interpreter, cpu: Interpreter) -> Row:
    device_ms, cpu_ms = (in_turns([one.invoke], _TIMED)[0].median_ms for one in (interpreter, cpu))
    row = replace(row, device_ms=device_ms, cpu_ms=cpu_ms)
    slower = f"{device_ms:.3f} ms, {cpu_ms:.3f} ms on the CPU"
    return replace(row, status=SLOWER, reason=slower) if device_ms > cpu_ms else row


def kernels_of(report: DelegationReport) -> tuple[str, ...]:
    """Return the distinct kernel files and functions that a model launches."""
    return tuple(dict.fromkeys(kernel for row in report.partitions for kernel in row.kernels))


class _NotRepeatable(LiteclError):
    """Raised when identical runs give different results."""


def _on_device(check: Check, interpreter: Interpreter, settings: Settings, steps: Sequence[Step]) -> Outputs:
    """Return the first round's outputs. Raises _NotRepeatable if another round gives other bits."""
    if check.threads > 1:
        return _in_threads(check, settings, steps)
    first = _play(interpreter, steps)
    begun_bytes = 0
    for number in range(2, max(2, check.rounds) + 1):
        _require_same(first, _play(interpreter, steps), f"round {number} differs from the first")
        begun_bytes = resident_bytes() if number == max(2, check.rounds // 10) else begun_bytes
    grown = resident_bytes() - begun_bytes
    if check.rounds > 2 and grown > _GROWTH_BYTES:
        raise LiteclError(f"memory grew by {grown >> 20} MiB in {check.rounds} rounds")
    return first


def _in_threads(check: Check, settings: Settings, steps: Sequence[Step]) -> Outputs:
    """Run several threads, each with its own interpreter; return one result after comparing all."""
    results: list[Outputs] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            interpreter = _interpreter(check, settings)
            results.extend(_play(interpreter, steps) for _ in range(check.rounds))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(check.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    for other in results[1:]:
        _require_same(results[0], other, "threads differ")
    return results[0]


def _require_same(first: Outputs, again: Outputs, fault: str) -> None:
    for number, (a, b) in enumerate(zip(first, again, strict=True)):
        if not all(same_bits(x, y) for x, y in zip(a, b, strict=True)):
            raise _NotRepeatable(f"not repeatable: {fault}, in invoke {number}")


def _interpreter(check: Check, settings: Settings) -> Interpreter:
    options = {"dynamic_range": "reference", "strict": True, **check.options}
    delegate = CLDelegate(settings.device, cache_dir=settings.cache_dir, **options)
    return Interpreter(check.model(), delegates=[delegate], numbers=settings.numbers)


def _allocate(interpreter: Interpreter, step: Step) -> None:
    details = interpreter.get_input_details()
    for detail, feed in zip(details, step.feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()


def _play(interpreter: Interpreter, steps: Sequence[Step]) -> Outputs:
    """Run all steps, starting from initial variables."""
    results: Outputs = []
    for number, step in enumerate(steps):
        _allocate(interpreter, step)
        if step.reset or number == 0:
            interpreter.reset_all_variables()
        for detail, feed in zip(interpreter.get_input_details(), step.feeds, strict=True):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        variables = [t for t, spec in enumerate(interpreter.model.subgraphs[0].tensors) if spec.is_variable]
        outputs = [detail["index"] for detail in interpreter.get_output_details()]
        results.append([np.asarray(interpreter.get_tensor(t)) for t in (*outputs, *variables)])
    return results


@dataclass(frozen=True)
class _Comparison:
    relative: float
    ulp: float
    bound: float
    source: str
    reason: str


def _compare(check: Check, got: Outputs, wanted: Outputs) -> _Comparison:
    """Compare all outputs; report the bound of the one that exceeds it or comes closest to it."""
    outputs = []
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        for position, (x, y) in enumerate(zip(a, b, strict=False)):  # LiteRT's outputs come without variables
            d, (bound, source) = difference(x, y), check.bound(y.dtype)
            reason = _reason(d, bound) and f"invoke {number}, output {position}: {_reason(d, bound)}"
            outputs.append(_Comparison(d.relative, d.ulp, bound, source, reason))
    decisive = max(outputs, key=lambda c: (bool(c.reason), c.relative / c.bound if c.bound else 0.0, c.bound))
    return replace(decisive, relative=max(c.relative for c in outputs), ulp=max(c.ulp for c in outputs))


def _reason(d: Difference, bound: float) -> str:
    if not d.exceeds(bound):
        return ""
    return d.wrong or f"wrong values: off by {d.relative:.2g} of the largest, {bound:g} allowed ({d.ulp:.3g} ulp)"


def _words(error: BaseException) -> str:
    kind = "" if isinstance(error, _NotRepeatable) else f"{type(error).__name__}: "
    return kind + (summary(error) if isinstance(error, DelegateError) else str(error).partition("\n")[0])

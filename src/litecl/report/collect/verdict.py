"""Summarizes the outcome in sentences."""

from collections import Counter
from collections.abc import Sequence

from litecl.delegate.naming import counted
from litecl.perf.intervals import Ratio
from litecl.report.draw.units import digits
from litecl.report.draw.units import ms as _ms
from litecl.report.facts import Accuracy, Latency, NodeFacts, Refused

_ALIKE = 0.03  # times that differ by less count as equal
_ROUNDS = ", whose default kernels round differently from its reference kernels (--against litert-reference)."
_NAMED = 3  # operators in a sentence


def verdict(
    nodes: Sequence[NodeFacts],
    refused: Sequence[Refused],
    latency: Latency,
    threads: int,
    peers: Sequence[Latency],
    ratios: Sequence[Ratio],
    accuracy: Sequence[Accuracy],
    warnings: Sequence[str],
) -> tuple[str, ...]:
    """Return sentences on where nodes run and the cost of the CPU's, the time compared with peers, and accuracy.

    threads: of the device. ratios: of the peers' medians to ours; empty if the machine was busy. warnings: of the
    delegation report.
    """
    return (
        *warnings,
        _where_nodes_run(nodes, refused),
        _times(latency, threads, peers, ratios),
        *map(_outputs, accuracy),
    )


def _where_nodes_run(nodes: Sequence[NodeFacts], refused: Sequence[Refused]) -> str:
    left = sum(len(row.nodes) for row in refused)
    if not left:
        return f"All {len(nodes):,} nodes run on the device."
    if left == len(nodes):
        return f"None of the {left:,} nodes runs on the device: {refused[0].reason}."
    ops = _ops(refused)
    others = "The other one" if left == 1 else f"The {left:,} others"
    cost = f"{sum(row.share for row in refused):.0%}".replace("%", " %")
    verb = "costs" if left == 1 else "cost"
    reason = f"{refused[0].reason}" if len(refused) == 1 else f"mostly: {refused[0].reason}"
    on_device = f"{len(nodes) - left:,} of {len(nodes):,} nodes run on the device."
    return f"{on_device} {others} ({ops}) {verb} {cost} of the time: {reason}."


def _ops(refused: Sequence[Refused]) -> str:
    counts: Counter[str] = Counter()
    for row in refused:
        counts.update(row.ops)
    names = [op for op, _ in counts.most_common(_NAMED)]
    return ", ".join(names) + (", ..." if len(counts) > _NAMED else "")


def _times(latency: Latency, threads: int, peers: Sequence[Latency], ratios: Sequence[Ratio]) -> str:
    times_ms = [latency.median_ms, *(peer.median_ms for peer in peers)]
    ours, *theirs = [_ms(each, *times_ms) for each in times_ms]
    if not peers:
        return f"An invoke takes {ours}."
    named = [f"{peer.name} with {counted(peer.threads or 1, 'thread')}" for peer in peers]
    time_taken = f"An invoke takes {ours} with {counted(threads, 'thread')}"
    if not ratios:
        others = ", and ".join(f"{name} {time}" for name, time in zip(named, theirs, strict=True))
        return f"{time_taken}, {others}; a busy machine allows no ratio."
    compared = zip(ratios, named, theirs, strict=True)
    return f"{time_taken}: {', and '.join(f'{_compared(ratio)} {name} ({time})' for ratio, name, time in compared)}."


def _compared(ratio: Ratio) -> str:
    """Describe a peer's time over ours. If the ratio's interval contains 1, they count as equally fast."""
    if abs(ratio.value - 1) < _ALIKE or ratio.low <= 1 <= ratio.high:
        return "about as fast as"
    if ratio.value > 1:
        return f"{digits(ratio.value)} times ({digits(ratio.low)} to {digits(ratio.high)}) as fast as"
    return f"{digits(1 / ratio.value)} times ({digits(1 / ratio.high)} to {digits(1 / ratio.low)}) as long as"


def _outputs(accuracy: Accuracy) -> str:
    wrong = [row for row in accuracy.outputs if row.departs]
    if not accuracy.outputs:
        return f"No outputs to compare with {accuracy.reference}."
    quantized = [row.steps for row in accuracy.outputs if row.steps is not None]
    worst = max(row.relative for row in accuracy.outputs)
    far = f"{max(quantized)} quantization steps" if quantized else f"{worst:.1e} of their magnitude"
    if wrong:
        words = f"{len(wrong)} of {len(accuracy.outputs)} outputs differ from {accuracy.reference}, by up to {far}"
        return words + (_ROUNDS if quantized and accuracy.reference == "litert" else ".")
    if not worst:
        return f"Outputs equal {accuracy.reference} bit for bit."
    return f"Outputs match {accuracy.reference} within {far}."

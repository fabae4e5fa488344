"""The outcome in sentences."""

from collections import Counter
from collections.abc import Sequence

from litecl.report.draw.units import ms as _ms
from litecl.report.facts import Accuracy, Latency, NodeFacts, Refused

_ALIKE = 0.03  # times that differ by less count as the same
_ROUNDS = ", whose default kernels round differently from its reference kernels (--against litert-reference)."
_NAMED = 3  # operators in a sentence


def verdict(
    nodes: Sequence[NodeFacts],
    refused: Sequence[Refused],
    latency: Latency,
    threads: int,
    peers: Sequence[Latency],
    accuracy: Sequence[Accuracy],
    warnings: Sequence[str],
) -> tuple[str, ...]:
    """Return what ran where and what the rest costs; the time beside that of peers; whether outputs are right.

    threads: of the device. warnings: of the delegation report.
    """
    return (*warnings, _places(nodes, refused), *_times(latency, threads, peers), *map(_outputs, accuracy))


def _places(nodes: Sequence[NodeFacts], refused: Sequence[Refused]) -> str:
    left = sum(len(row.nodes) for row in refused)
    if not left:
        return f"All {len(nodes)} nodes run on the device."
    if left == len(nodes):
        return f"None of the {left} nodes runs on the device: {refused[0].reason}."
    ops = _ops(refused)
    others = "The other one" if left == 1 else f"The {left} others"
    cost = f"{sum(row.share for row in refused):.0%}".replace("%", " %")
    verb = "costs" if left == 1 else "cost"
    reason = f"{refused[0].reason}" if len(refused) == 1 else f"mostly: {refused[0].reason}"
    on_device = f"{len(nodes) - left} of {len(nodes)} nodes run on the device."
    return f"{on_device} {others} ({ops}) {verb} {cost} of the time: {reason}."


def _ops(refused: Sequence[Refused]) -> str:
    counts: Counter[str] = Counter()
    for row in refused:
        counts.update(row.ops)
    names = [op for op, _ in counts.most_common(_NAMED)]
    return ", ".join(names) + (", ..." if len(counts) > _NAMED else "")


def _times(latency: Latency, threads: int, peers: Sequence[Latency]) -> list[str]:
    ours = f"An invoke takes {_ms(latency.median_ms)}"
    if not peers:
        return [f"{ours}."]
    compared = []
    for peer in peers:
        ratio = peer.median_ms / latency.median_ms
        words = "about as fast as" if abs(ratio - 1) < _ALIKE else f"{1 / ratio:.3g} times as long as"
        words = f"{ratio:.3g} times as fast as" if ratio >= 1 + _ALIKE else words
        plural = "" if peer.threads == 1 else "s"
        compared.append(f"{words} {peer.name} with {peer.threads} thread{plural} ({_ms(peer.median_ms)})")
    plural = "" if threads == 1 else "s"
    return [f"{ours} with {threads} thread{plural}: {', and '.join(compared)}."]


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

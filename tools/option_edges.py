"""Searches for wrong results at the edges of options: every field of every options record, at 0, negative and huge.

``python -m tools.option_edges`` takes the cases of every operator (``litecl.cases``), changes one field
of their options at a time, and compares the device with the interpreter, and the interpreter with LiteRT's reference
kernels, each in a process that may die of it. Whoever refuses an edge must do so with a typed error, and a device that
has claimed one must not fall back to the CPU. docs/differences.md says where LiteRT is known to differ.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import IntEnum
from itertools import islice
from typing import Any

import numpy as np
from rich.progress import track

from litecl.cases import Case
from litecl.cases.tables import TABLES
from litecl.cases.tolerances import DEVICE, INTERPRETER
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GATHER_ND
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from tools.edge_peers import Outcome, Peer, serve_device, serve_interpreter, serve_litert

_INTEGERS = (0, 1, -1, 2, 7, -7, 2**31 - 1, -(2**31))
_FLOATS = (0.0, -0.0, 1.0, -1.0, -0.5, 1e-30, 3e38, -3e38, float("inf"), float("-inf"), float("nan"))
_LIMITED = "refused: LimitError"
_KINDS = 2  # of cases of an operator, for each set of types
_GROWN = 0.02
_NEAREST = (GATHER, GATHER_ND, EMBEDDING_LOOKUP)  # of which the device takes the nearest element, the CPU refuses

_TANH, _NO_ACTIVATION = ActivationFunctionType.TANH, ActivationFunctionType.NONE
_OTHERS: tuple[tuple[str, str, Container[Any]], ...] = (
    # the end of an operator's name, a field, and the values of it with which LiteRT computes something else
    ("LSTM", "fused_activation_function", (_NO_ACTIVATION,)),
    ("", "fused_activation_function", (_TANH, ActivationFunctionType.SIGN_BIT)),
    ("MUL", "fused_activation_function", (ActivationFunctionType.RELU_N1_TO_1,)),  # of UINT32
    ("", "quantized_bias_type", (TensorType.FLOAT32,)),
    ("STRIDED_SLICE", "new_axis_mask", (-1, -7, 7, 2**31 - 1)),
    ("STRIDED_SLICE", "shrink_axis_mask", _INTEGERS),  # of a stride below 0
    ("STRIDED_SLICE", "offset", (True,)),
    ("LOCAL_RESPONSE_NORMALIZATION", "alpha", (3e38, -3e38, np.inf, -np.inf)),
    ("LOCAL_RESPONSE_NORMALIZATION", "bias", (3e38, -3e38, np.inf, -np.inf)),
    ("LOCAL_RESPONSE_NORMALIZATION", "beta", (3e38, -3e38, np.inf, -np.inf)),
    *(("PostProcess", f"{side}_scale", (0.0, 1e-30)) for side in "yxhw"),  # which divides: boxes are not finite
    ("GELU", "approximate", (True,)),  # far below zero, where LiteRT has 0
)
# With which there are fewer detections: LiteRT leaves rows past the last one as they were.
_UNCLEARED = ("nms_score_threshold", "nms_iou_threshold", "max_classes_per_detection")


@dataclass
class Findings:
    """How often each outcome was seen, and what differs: an edge, and how."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    by_litert: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Edge:
    """A case with one field of its options at an edge."""

    name: str
    case: Case
    differs: bool  # whether LiteRT is known to compute something else

    def content(self) -> bytes | None:
        """Return its model; None where the operator refuses it before there is one."""
        try:
            return write(self.case.model())
        except (LiteclError, ValueError):  # another number of outputs than the case declares, too
            return None


def edges(case: Case) -> Iterator[Edge]:
    """Yield a case at every edge of its options."""
    options = case.options
    if not is_dataclass(options) or isinstance(options, type):
        return
    for item in fields(options):
        before = getattr(options, item.name)
        for value in _values(before):
            if value == before and type(value) is type(before):
                continue
            grows = case.op.name.endswith("LSTM") and value == _NO_ACTIVATION  # and rounding with the states
            tolerance = _GROWN if grows else case.tolerance
            changed = replace(case, options=replace(options, **{item.name: value}), tolerance=tolerance)
            yield Edge(f"{case!r}, {item.name} = {value}", changed, _differs(case, item.name, value))


def _differs(case: Case, name: str, value: Any) -> bool:
    if name == "fused_activation_function" and case.op.name.endswith(("LSTM", "RNN")) and value == _TANH:
        return False
    others = (case.op.name.endswith(end) and name == of and value in values for end, of, values in _OTHERS)
    return name in _UNCLEARED or any(others)


def _values(before: Any) -> Sequence[Any]:
    if isinstance(before, bool):
        return (not before,)
    if isinstance(before, IntEnum):
        return tuple(type(before))
    if isinstance(before, int):
        return _INTEGERS
    return _FLOATS if isinstance(before, float) else ()


def chosen(most: int = _KINDS) -> dict[str, list[Case]]:
    """Return cases of every operator, at most so many for each set of types."""
    found, seen = defaultdict(list), Counter[Any]()
    for case in (case for table in TABLES for case in table.CASES):
        kind = case.op, tuple(None if x is None else x.dtype for x in case.inputs), bool(case.quantization)
        if seen[kind] < most and _is_small(case) and getattr(case.op, "pure", True):
            seen[kind] += 1
            found[case.op.name].append(case)
    return dict(sorted(found.items()))


def _is_small(case: Case) -> bool:
    return sum(x.size for x in case.inputs if x is not None) < 1 << 14


def difference(got: Outcome, wanted: Outcome, tolerances: dict[str, float], given: float | None = None) -> str:
    """Return how two outcomes differ; empty where they agree. NaN and infinities must be in the same places.

    given: the tolerance of the case, which takes the place of those by type.
    """
    if any(isinstance(outcome, str) and outcome == _LIMITED for outcome in (got, wanted)):
        return ""  # of memory, which depends on who computes
    if isinstance(got, str) or isinstance(wanted, str):
        agree = isinstance(got, str) and isinstance(wanted, str) and not got.startswith("untyped")
        return "" if agree else f"{_said(got)}, expected {_said(wanted)}"
    for a, b in zip(got, wanted, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        if a.dtype.kind not in "fc":
            if not (a == b).all():
                return f"{int((a != b).sum())} of {a.size} elements differ"
            continue
        tolerance = tolerances.get(a.dtype.name, 0.0) if given is None else given
        with np.errstate(all="ignore"):
            largest = float(np.abs(b[np.isfinite(b)]).max(initial=0))
            right = np.isclose(a, b, tolerance, tolerance * largest, equal_nan=True)
        if not right.all():
            at = int(np.flatnonzero(~right)[0])
            return (
                f"{int((~right).sum())} of {a.size} elements differ, first {a.reshape(-1)[at]} for {b.reshape(-1)[at]}"
            )
    return ""


def _said(outcome: Outcome) -> str:
    return outcome if isinstance(outcome, str) else "outputs"


def search(table: dict[str, list[Case]], device: Peer, *, litert: bool = True, every: int = 1) -> Findings:
    """Compare the edges of some cases, or every n-th of them. device: serves ``serve_device``."""
    findings = Findings()
    peers = (Peer(serve_interpreter), device, *([Peer(serve_litert)] if litert else []))
    listed = (edge for cases in table.values() for case in cases for edge in edges(case))
    for edge in track([*islice(listed, 0, None, every)], "edges", disable=not sys.stderr.isatty()):
        compare(edge, findings, *peers)
    for peer in peers:
        peer.close()
    return findings


def compare(edge: Edge, findings: Findings, *peers: Peer) -> None:
    """Add what interpreter, device and, if it is among the peers, LiteRT make of an edge."""
    content = edge.content()
    if content is None:
        findings.counts["refused"] += 1
        return
    cpu, on_device, *theirs = (peer.outcomes(content, edge.case) for peer in peers)
    if cpu is None or on_device is None:
        findings.faults.append(f"{edge.name}: {'the interpreter' if cpu is None else 'the device'} died or hung")
        return
    (here,), (there,) = cpu, on_device
    findings.counts[here.partition(":")[0] if isinstance(here, str) else "computed"] += 1
    if isinstance(here, str) and here.startswith("untyped"):
        findings.faults.append(f"{edge.name}: the interpreter: {here}")
    nearest = edge.case.op in _NEAREST and here == "refused: ModelError"
    if not nearest and (fault := difference(there, here, DEVICE, edge.case.tolerance)):
        findings.faults.append(f"{edge.name}: the device: {fault}")
    for found in theirs:
        if found is None or isinstance(found[0], str):
            findings.counts["refused by LiteRT" if found else "LiteRT died"] += 1
        else:
            findings.counts["computed by LiteRT"] += 1
            if isinstance(here, str):
                findings.counts["refused here alone"] += 1
            elif not edge.differs and (fault := difference(here, found[0], INTERPRETER, edge.case.tolerance)):
                findings.by_litert.append(f"{edge.name}: {fault}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if the device differs from the interpreter, or an error is untyped."""
    parser = argparse.ArgumentParser(prog="python -m tools.option_edges", description=__doc__)
    parser.add_argument("--ops", nargs="+", metavar="OP", help="default: all")
    parser.add_argument("--device", help="see `litecl devices`")
    parser.add_argument("--cases", type=int, default=_KINDS, metavar="N", help="of an operator, for each set of types")
    parser.add_argument("--no-litert", action="store_true", help="compare device and interpreter alone")
    args = parser.parse_args(argv)
    table = {op: found for op, found in chosen(args.cases).items() if not args.ops or op in args.ops}
    findings = search(table, Peer(serve_device, args.device), litert=not args.no_litert)
    for fault in findings.faults:
        print(fault)
    for fault in findings.by_litert:
        print(f"differs from LiteRT: {fault}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(findings.counts.items())))
    print(f"{len(findings.faults)} faults, {len(findings.by_litert)} differences from LiteRT")
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compares other runtimes with litecl: in a line each, or in a table of models, slowest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from litecl.cli.tables import table, titled


@dataclass(frozen=True)
class Peer:
    """A peer's comparison over several models, by its least times over ours: above 1 litecl is faster.

    num_threads: of the peer; ours: of litecl, None if it chose. tenth: the 10th percentile of the models' ratios.
    """

    name: str
    num_threads: int
    device: str | None
    ours: int | None
    models: int
    median: float
    tenth: float
    below_1: int


def peers(cases: Sequence[Mapping[str, Any]]) -> list[Peer]:
    """Summarize each peer with each number of threads."""
    summaries = []
    for key, rows in _by_peer(cases).items():
        ratios = np.array([compared["min_ratio"] for _, compared in rows])
        middle, tenth = np.median(ratios), np.percentile(ratios, 10)
        summaries.append(Peer(*key, len(rows), float(middle), float(tenth), int((ratios < 1).sum())))
    return summaries


_Compared = tuple[str, Mapping[str, Any]]  # the model, and one of its comparisons


def _by_peer(cases: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, str | None, int | None], list[_Compared]]:
    groups: dict[tuple[str, int, str | None, int | None], list[_Compared]] = {}
    for case in cases:
        device = None if case["device"] is None else case["device"]["name"]
        for compared in case["comparisons"]:
            key = compared["name"], compared["num_threads"], device, case["subjects"][0]["num_threads"]
            groups.setdefault(key, []).append((Path(case["model"]).name, compared))
    return groups


def comparisons(cases: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """Return a line per peer, or for several models a table per peer, slowest first."""
    if len({case["model"] for case in cases}) == 1:
        return [Text(_comparison(compared)) for case in cases for compared in case["comparisons"]]
    views: list[RenderableType] = []
    for peer, rows in zip(peers(cases), _by_peer(cases).values(), strict=True):
        view = table("model", "of medians", "of least", "difference")
        for model, compared in sorted(rows, key=lambda row: row[1]["min_ratio"]):
            view.add_row(model, _median(compared), f"{compared['min_ratio']:.2f}", f"{compared['difference']:.1e}")
        views += [titled(_title(peer), view), Text(_overview(peer))]
    return views


def _title(peer: Peer) -> str:
    where = (f" on {peer.device}" if peer.device else "") + (
        f", {_threads(peer.ours)}" if peer.ours is not None else ""
    )
    return f"{peer.name} ({_threads(peer.num_threads)}) / litecl{where}; above 1: litecl is faster"


def _overview(peer: Peer) -> str:
    return (
        f"{peer.models} models: median x{peer.median:.2f}, lowest tenth below x{peer.tenth:.2f}, {peer.below_1} below 1"
    )


def _threads(count: int) -> str:
    return f"{count} thread" + ("" if count == 1 else "s")


def _median(c: Mapping[str, Any]) -> str:
    """Return the ratio of medians with its interval."""
    return f"{c['median_ratio']:.2f} ({c['median_low']:.2f} to {c['median_high']:.2f})"


def _comparison(c: Mapping[str, Any]) -> str:
    line = (
        f"{c['name']} ({_threads(c['num_threads'])}) / litecl: median x{_median(c)}, min "
        f"x{c['min_ratio']:.2f} (above 1: litecl is faster); largest difference {c['difference']:.1e} of the output's "
        "magnitude"
    )
    if c["steps"] is not None:
        line += f", {c['steps']} quantization steps"
    if c["steps"] and c["name"] == "litert":
        line += " (LiteRT's default kernels round differently from its reference kernels: --against litert-reference)"
    return line

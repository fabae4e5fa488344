"""Compares other runtimes with litecl: in a line each, or in a table of models, slowest first.

If there are several, the fastest for each model is compared too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from litecl.cli.tables import table, titled
from litecl.interpreter.dataclass import dataclass

FASTEST = "fastest"


@dataclass(frozen=True)
class Peer:
    """A peer's comparison over several models, by its least times over ours: above 1 litecl is faster.

    name: ``FASTEST`` for the fastest peer of each model. num_threads: of the peer, None for the fastest; ours: of
    litecl, None if it chose. tenth: the 10th percentile of the models' ratios.
    """

    name: str
    num_threads: int | None
    device: str | None
    ours: int | None
    models: int
    median: float
    tenth: float
    below_1: int


def peers(cases: Sequence[Mapping[str, Any]]) -> list[Peer]:
    """Summarize each peer with each number of threads, and the fastest of several."""
    summaries = []
    for key, rows in _by_peer(cases).items():
        ratios = np.array([compared["min_ratio"] for _, compared in rows])
        middle, tenth = np.median(ratios), np.percentile(ratios, 10)
        summaries.append(Peer(*key, len(rows), float(middle), float(tenth), int((ratios < 1).sum())))
    return summaries


_Compared = tuple[str, Mapping[str, Any]]  # the model, and one of its comparisons
_Key = tuple[str, int | None, str | None, int | None]  # the first fields of ``Peer``


def _by_peer(cases: Sequence[Mapping[str, Any]]) -> dict[_Key, list[_Compared]]:
    groups: dict[_Key, list[_Compared]] = {}
    fastest: dict[_Key, list[_Compared]] = {}
    for case in cases:
        model = Path(case["model"]).name
        here = None if case["device"] is None else case["device"]["name"], case["subjects"][0]["num_threads"]
        for compared in case["comparisons"]:
            groups.setdefault((compared["name"], compared["num_threads"], *here), []).append((model, compared))
        if case["fastest"] is not None:
            fastest.setdefault((FASTEST, None, *here), []).append((model, case["fastest"]))
    return groups | (fastest if len({name for name, *_ in groups}) > 1 else {})


def comparisons(cases: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """Return a line per peer, or for several models a table per peer, slowest first."""
    if len({case["model"] for case in cases}) == 1:
        return [Text(line) for case in cases for line in _lines(case)]
    views: list[RenderableType] = []
    for peer, rows in zip(peers(cases), _by_peer(cases).values(), strict=True):
        which = ["runtime"] if peer.name == FASTEST else []
        view = table("model", *which, "of medians", "of least", "difference")
        for model, compared in sorted(rows, key=lambda row: row[1]["min_ratio"]):
            runtime = [f"{compared['name']} ({_threads(compared['num_threads'])})"] if which else []
            apart = f"{compared['difference']:.1e}" + ("" if compared["agrees"] else " (!)")
            view.add_row(model, *runtime, _median(compared), f"{compared['min_ratio']:.2f}", apart)
        views += [titled(_title(peer), view), Text(_overview(peer))]
    return views


def _title(peer: Peer) -> str:
    where = (f" on {peer.device}" if peer.device else "") + (
        f", {_threads(peer.ours)}" if peer.ours is not None else ""
    )
    name = peer.name if peer.num_threads is None else f"{peer.name} ({_threads(peer.num_threads)})"
    return f"{name} / litecl{where}; above 1: litecl is faster"


def _overview(peer: Peer) -> str:
    return (
        f"{peer.models} models: median x{peer.median:.2f}, lowest tenth below x{peer.tenth:.2f}, {peer.below_1} below 1"
    )


def _threads(count: int) -> str:
    return f"{count} thread" + ("" if count == 1 else "s")


def _median(c: Mapping[str, Any]) -> str:
    """Return the ratio of medians with its interval."""
    return f"{c['median_ratio']:.2f} ({c['median_low']:.2f} to {c['median_high']:.2f})"


def _lines(case: Mapping[str, Any]) -> list[str]:
    """Return a line for each comparison of a model, and one for the fastest of several runtimes."""
    lines = [_comparison(compared) for compared in case["comparisons"]]
    if len({c["name"] for c in (*case["comparisons"], *case["refusals"])}) > 1 and (best := case["fastest"]):
        runtime = f"{best['name']} ({_threads(best['num_threads'])})"
        lines.append(f"fastest of the others: {runtime}, median x{_median(best)}, min x{best['min_ratio']:.2f}")
    return lines


def _comparison(c: Mapping[str, Any]) -> str:
    line = (
        f"{c['name']} {c['version']} ({_threads(c['num_threads'])}) / litecl: median x{_median(c)}, min "
        f"x{c['min_ratio']:.2f} (above 1: litecl is faster); largest difference {c['difference']:.1e} of the output's "
        "magnitude"
    )
    if c["steps"] is not None:
        line += f", {c['steps']} quantization steps"
    if not c["agrees"]:
        line += " (more than rounding explains: not compared as the fastest)"
    if c["steps"] and c["name"] == "litert":
        line += " (LiteRT's default kernels round differently from its reference kernels: --against litert-reference)"
    return line

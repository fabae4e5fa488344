"""The figures of ``python -m tools.gpu_page`` as a table and as a page of Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tools.gpu.peers import PEERS, PeerTime

Row = Mapping[str, Any]


def _figures(row: Row) -> list[str]:
    """Return the figures of a model that table and page have in common."""
    peers = (str(PeerTime(**row["peers"][name])) if name in row["peers"] else "" for name in PEERS)
    times = (format(row[name], ".3f") for name in ("min_ms", "median_ms"))
    return [str(row["batch"]), f"{row['difference']:.1e}", *times, *peers, str(row["launches"]), str(row["waits"])]


def _share(kernel: Row) -> str:
    return "" if kernel["share"] is None else format(kernel["share"], ".0%")


def table(rows: Sequence[Row]) -> Table:
    """Return the figures for people, with the kernel that takes longest."""
    heads = ("batch", "difference", "least ms", "median ms", *PEERS, "launches", "waits", "most time", "of peak")
    made = Table("model", *heads)
    for row in rows:
        longest = next(iter(row["kernels"]), None)
        most = ["", ""] if longest is None else [longest["kernel"], _share(longest)]
        made.add_row(row["name"], *_figures(row), *most)
    return made


def problems(data: Mapping[str, Any]) -> list[str]:
    """Return what failed, where other runtimes ran if not on the GPU, and why they have no times, a line each."""
    rows: Sequence[Row] = data["rows"]
    lines = [f"{one['name']}, batch {one['batch']}, failed: {one['problem']}" for one in data["failures"]]
    lines += [
        f"{row['name']}, batch {row['batch']}: no times of kernels: {row['without_kernels']}"
        for row in rows
        if row["without_kernels"]
    ]
    elsewhere: dict[str, None] = {}
    untimed: dict[str, list[str]] = {}
    for row in rows:
        for name, peer in row["peers"].items():
            if peer["problem"]:
                untimed.setdefault(f"{name}: {peer['problem']}", []).append(row["name"])
            elif peer["runs_on"] != "CUDA":
                elsewhere[f"{name} ran on the CPU: there is no CUDA device, or its package is not the one for CUDA"] = (
                    None
                )
    every = (
        why if len(models) == len(rows) else f"{why} ({'; '.join(dict.fromkeys(models))})"
        for why, models in untimed.items()
    )
    return [*lines, *elsewhere, *every]


def page(data: Mapping[str, Any]) -> str:
    """Return the figures as a page of Markdown, with the device named."""
    heads = ("model", "batch", "difference", "least ms", "median ms", *(f"{n}, least ms" for n in PEERS))
    lines = [
        f"# litecl on {data['device']['name']}",
        "",
        f"Measured on {data['date']}. {_peaks(data['peaks'])}",
        "",
        *_head(*heads, "launches", "waits"),
    ]
    lines += [_line(row["name"], *_figures(row)) for row in data["rows"]]
    lines += ["", *(f"- {line}" for line in problems(data)), ""]
    lines += _head("model", "batch", "kernel", "launches", "ms", "share of the peaks")
    lines += [
        _line(row["name"], str(row["batch"]), k["kernel"], str(k["launches"]), f"{k['ms']:.4f}", _share(k))
        for row in data["rows"]
        for k in row["kernels"]
    ]
    return "\n".join(lines) + "\n"


def _peaks(peaks: Mapping[str, float] | None) -> str:
    if peaks is None:
        return "Peaks were not measured."
    return f"Peaks measured: {peaks['flops'] / 1e9:,.0f} GFLOP/s, {peaks['bytes'] / 1e9:,.0f} GB/s."


def _head(*names: str) -> list[str]:
    return [_line(*names), "|" + "---|" * len(names)]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"

"""A table of conversions: litecl's against those of TensorFlow's own converter.

    PYTHONPATH=tests python -m tools.conversions [SECTION ...] [--no-peer] [--json FILE]

For every row: operators (main subgraph + those that it runs), seconds and peak memory (MB beyond what the process had)
of both, and the largest difference to TensorFlow, relative to the largest magnitude, in litecl's interpreter, with its
delegate, and in LiteRT.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array
from support import conversion_rows as rows
from support.conversion import invoke, litert
from support.conversion_rows import Row
from support.conversion_zoo import zoo

_SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "recurrent": rows.recurrent,
    "control_flow": rows.control_flow,
    "variables": rows.variables,
    "tensorflow_1": rows.tensorflow_1,
    "composites": rows.composites,
    "zoo": zoo,
}
_RUNTIMES: dict[str, Callable[[bytes], Any]] = {
    "interpreter": lambda content: Interpreter(model_content=content),
    "delegate": lambda content: Interpreter(model_content=content, delegates=[CLDelegate()]),
    "litert": litert,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a conversion of ours fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*_SECTIONS, []], metavar="SECTION", help=", ".join(_SECTIONS))
    parser.add_argument("--no-peer", action="store_true", help="do not run TensorFlow's converter")
    parser.add_argument("--json", type=Path, help="write the rows there too")
    args = parser.parse_args(arguments)
    console, found = Console(width=170), []
    for section in args.sections or _SECTIONS:
        table = Table("conversion", "litecl", "s", "MB", "TFLiteConverter", "s", "MB", *_RUNTIMES, title=section)
        for row in _SECTIONS[section]():
            measured = measure(row, with_peer=not args.no_peer)
            found.append({"section": section, **measured})
            table.add_row(*(str(value) for value in measured.values()))
            console.print(f"[dim]{' | '.join(str(value) for value in measured.values())}", highlight=False)
        console.print(table)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    return int(any(str(row["ours"]).startswith("FAILS") for row in found))


def measure(row: Row, *, with_peer: bool = True) -> dict[str, Any]:
    """One row of the table."""
    ours, ours_s, ours_mb, content = _converted(row.ours)
    peer, peer_s, peer_mb = (row.note or "not run"), 0.0, 0
    if with_peer and row.peers is not None:
        peer, peer_s, peer_mb, _ = _converted(row.peers)
    differences = {name: "" if content is None else _difference(make, content, row) for name, make in _RUNTIMES.items()}
    return {
        "name": row.name,
        "ours": ours,
        "ours_s": round(ours_s, 2),
        "ours_mb": ours_mb,
        "peer": peer,
        "peer_s": round(peer_s, 2),
        "peer_mb": peer_mb,
        **differences,
    }


def _converted(make: Callable[[], Any]) -> tuple[str, float, int, bytes | None]:
    before, start = _peak_mb(anew=True), time.perf_counter()
    try:
        content = make().convert()
    except Exception as error:
        return f"FAILS: {str(error).strip()[:60]}", time.perf_counter() - start, _peak_mb() - before, None
    seconds, peak = time.perf_counter() - start, _peak_mb() - before
    return "+".join(str(len(graph.nodes)) for graph in read(content).subgraphs), seconds, peak, content


def _peak_mb(*, anew: bool = False) -> int:
    """Return the most memory that the process has had, from now on if ``anew``; 0 where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return 0
    if anew:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def _difference(make: Callable[[bytes], Any], content: bytes, row: Row) -> str:
    try:
        runtime = make(content)
        worst = max(_relative(invoke(runtime, v), e) for v, e in zip(row.values, row.expected, strict=True))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:50]}"
    return f"{worst:.1e}"


def _relative(got: Sequence[Array], expected: Sequence[Array]) -> float:
    worst = 0.0
    for value, wanted in zip(got, expected, strict=True):
        if value.shape != wanted.shape:
            return float("inf")
        magnitude = float(np.abs(wanted).max(initial=0)) or 1.0
        worst = max(worst, float(np.abs(value.astype(np.float64) - wanted).max(initial=0)) / magnitude)
    return worst


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    sys.exit(main())

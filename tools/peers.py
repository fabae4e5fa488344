"""A comparison of litecl with LiteRT and other runtimes, in one run.

``python -m tools.peers --models FOLDER --json FILE --page PAGE --svg FILE`` adds the figures to those of other
processors, and writes the table and the picture of all.
All runtimes live in one process and are timed in turns, a few milliseconds each, so that any disturbance of the
machine affects all. A ratio is LiteRT's time over litecl's: above 1 litecl is faster. ``--against all`` measures the
other runtimes that are installed too, and gives the ratio of the fastest whose outputs agree.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from litecl.delegate import CLDelegate
from litecl.delegate.devices import choose
from litecl.delegate.native.processors import processors
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.perf.contenders import Contender, start_peer
from litecl.perf.feeds import Runtime, difference, outputs_of, prepare, random_inputs
from litecl.perf.models import layers
from litecl.perf.peak import flops
from litecl.perf.peers import ALL, PEERS, chosen
from litecl.perf.timing import elapsed_ms, in_turns
from support import networks
from tools.peer_page import Result, Run, draw, fastest_of, keep, write

_TURN_MS = 4.0  # the least duration of a turn of one runtime
_MOST_INVOKES = 400  # a turn
_CLOSE, _CLOSE_INTEGERS = 2e-4, 0.04  # differences of outputs, relative: XNNPACK rounds quantized ones in its own way


@dataclass(frozen=True)
class Peer:
    """A line of the table: a model, its required ratio, and the ratio aimed at."""

    name: str
    build: Callable[[], bytes]
    goal: float
    aim: float
    threads: tuple[int, ...] = (1,)


def _peers(models: Path | None) -> list[Peer]:
    def file(name: str) -> Callable[[], bytes]:
        return lambda: (models / name).read_bytes() if models else b""

    made = [
        Peer("MobileNetV2 224", networks.mobilenet_v2, 1.0, 1.2),
        Peer("MobileNetV2 224", networks.mobilenet_v2, 0.9, 1.1, (2,)),
        Peer("ResNet50 224", networks.resnet_50, 1.2, 1.6, (1, 2)),
        Peer("3x3 convolution, 56x56x64", lambda: layers.convolution(56, 64), 1.5, 2.5),
        Peer("3x3 convolution, 14x14x256", lambda: layers.convolution(14, 256), 1.5, 2.5),
        Peer("depthwise 3x3, MobileNetV2's", layers.depthwise_set, 1.0, 1.5),
        Peer("dense 1x1280 to 1000", lambda: layers.dense(1280, 1000), 1.2, 1.4),
        Peer("LSTM, 100 steps, 64 units", lambda: layers.lstm(100, 64), 1.8, 2.5),
        Peer("LSTM, 100 steps, 256 units", lambda: layers.lstm(100, 256), 1.8, 2.5),
    ]
    found = [
        Peer("trained_lstm", file("tensorflow-tflite-micro/trained_lstm.tflite"), 1.2, 2.0),
        Peer("DTLN, first half", file("breizhn-DTLN/model_1.tflite"), 1.2, 2.0),
        *(Peer(name, file(f"mlcommons-tiny/{stem}.tflite"), 1.0, 1.3) for name, stem in _TINY_FLOAT),
        *(Peer(name, file(f"mlcommons-tiny/{stem}.tflite"), 1.0, 1.4) for name, stem in _TINY_INT8),
        Peer("MobileNetV2 224 int8", file("google-coral-test_data/tf2_mobilenet_v2_1.0_224_ptq.tflite"), 1.0, 1.3),
    ]
    return made if models is None else made + found


_TINY_FLOAT = (
    ("MLPerf Tiny ad01", "ad01_fp32"),
    ("MLPerf Tiny kws, int8 weights", "kws_ref_model_float32"),
    ("MLPerf Tiny resnet", "pretrainedResnet"),
    ("MLPerf Tiny vww", "vww_96_float"),
)
_TINY_INT8 = (
    ("MLPerf Tiny ad01 int8", "ad01_int8"),
    ("MLPerf Tiny kws int8", "kws_ref_model"),
    ("MLPerf Tiny resnet int8", "pretrainedResnet_quant"),
    ("MLPerf Tiny vww int8", "vww_96_int8"),
)


def measure(peer: Peer, threads: int, rounds: int, peak: float, others: Sequence[str] = ()) -> Result:
    """Times one model on litecl, LiteRT and others that can run it, and compares their outputs."""
    content = peer.build()
    with TemporaryDirectory() as folder:  # litecl reads large weights where a file's content lies
        (file := Path(folder) / "model.tflite").write_bytes(content)
        ours = Interpreter(file, delegates=[CLDelegate(num_threads=threads, strict=True)])
    ours.allocate_tensors()
    inputs = random_inputs(ours.get_input_details(), seed=0)
    prepare(ours, inputs)
    ours.invoke()
    started = [start_peer(name, threads, content, inputs) for name in dict.fromkeys(["litert", *others])]
    peers = [one for one in started if isinstance(one, Contender)]
    if not peers or peers[0].name != "litert":
        raise LiteclError(str(started[0]))
    runtimes: list[Runtime] = [ours, *(one.runtime for one in peers)]
    apart = [difference(outputs_of(ours), outputs_of(one.runtime)) for one in peers]
    turns = [turn(runtime) for runtime in runtimes]
    in_turns([run for run, _ in turns], 3)
    timed = in_turns([run for run, _ in turns], rounds)
    mine, *each = (np.array(stats.times_ms) / count for stats, (_, count) in zip(timed, turns, strict=True))
    theirs = each[0]
    ratios = theirs / mine
    agreeing = zip(peers, each, apart, strict=True)
    medians = {one.name: float(np.median(times)) for one, times, far in agreeing if far <= _allowed(peer.name)}
    fastest = min(medians, key=lambda name: medians[name], default="") if others else ""
    report = ours.delegation_report()
    operations = sum(row.flops for row in report.partitions)
    low, high = np.percentile(ratios, (10, 90))
    return Result(
        peer.name,
        threads,
        float(np.median(mine)),
        float(np.median(theirs)),
        float(np.median(theirs) / np.median(mine)),
        float(low),
        float(high),
        float(theirs.min() / mine.min()),
        operations / (mine.min() * 1e-3) / peak,
        apart[0],
        f"{report.claimed}/{len(report.nodes)} in {len(report.partitions)}",
        peer.goal,
        peer.aim,
        fastest,
        medians[fastest] / float(np.median(mine)) if fastest else None,
    )


def turn(runtime: Runtime) -> tuple[Callable[[], None], int]:
    """Run as many invokes as take ``_TURN_MS``, the first included; return the time per invoke and their number."""
    runtime.invoke()
    once_ms = min(elapsed_ms(runtime.invoke) for _ in range(5))
    count = int(min(_MOST_INVOKES, max(1.0, _TURN_MS / once_ms)))

    def run() -> None:
        for _ in range(count):
            runtime.invoke()

    return run, count


def table(results: Sequence[Result]) -> Table:
    """Return the results as people read them."""
    times = ("litecl ms", "LiteRT ms", "ratio", "10-90 %", "of minima", "fastest", "of peak")
    view = Table("model", "threads", *times, "goal", "aim", "apart", "claimed")
    for r in results:
        ratios = (
            f"{r.ratio:.2f}",
            f"{r.low:.2f}-{r.high:.2f}",
            f"{r.best_ratio:.2f}",
            fastest_of(r),
            f"{r.share_of_peak:.0%}",
        )
        goals = (f"{r.goal:.1f}", f"{r.aim:.1f}", f"{r.difference:.0e}", r.claimed)
        view.add_row(r.name, str(r.threads), f"{r.litecl_ms:.3f}", f"{r.litert_ms:.3f}", *ratios, *goals)
    return view


def machine() -> str:
    """Return the processor and how many of its cores this process may use."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {processors()} cores"


def kernels() -> str:
    """Return what litecl's kernels are compiled for on one thread."""
    device = choose(num_threads=1)
    return f"kernels for {device.describe().processor or device.name}, vectors of {device.target().vector_width}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything; the exit code is 1 if an output differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers", description=__doc__)
    parser.add_argument("--models", type=Path, help="a folder of .tflite files that lines of the table name")
    parser.add_argument("--rounds", type=int, default=25, help="timed turns of each runtime (default: 25)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        choices=[*PEERS, ALL],
        help="measure this runtime too; may be repeated",
    )
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--threads", type=int, help="lines with so many threads (default: all)")
    parser.add_argument("--json", type=Path, help="a file of runs: this processor's is added or replaced")
    parser.add_argument("--page", type=Path, help="a document whose table of all the runs is replaced (with --json)")
    parser.add_argument("--svg", type=Path, help="where to draw them (with --json)")
    args = parser.parse_args(arguments)
    if (args.page or args.svg) and not args.json:
        parser.error("--page and --svg show the runs of --json")
    load = os.getloadavg()[0]
    lines = [(p, t) for p in _peers(args.models) if args.only in p.name for t in p.threads]
    wanted = [(p, t) for p, t in lines if args.threads in (None, t)]
    peak = flops(choose(num_threads=1).open(profile=False, directory=None))
    others = chosen(args.against)
    results = [measure(p, t, args.rounds, peak * t, others) for p, t in track(wanted, console=Console(stderr=True))]
    Console(width=170).print(table(results))
    peaks, peer = f"float32 peak {peak / 1e9:.0f} GFLOP/s a core", f"LiteRT {PEERS['litert'].version}"
    peer = ", ".join([peer, *(f"{name} {PEERS[name].version}" for name in others if name != "litert")])
    run = Run(f"{machine()}; {kernels()}", peaks, peer, load, date.today().isoformat(), tuple(results))
    print(run.title)
    if args.json:
        runs = keep(args.json, run)
        if args.page:
            write(args.page, runs)
        if args.svg:
            draw(args.svg, runs)
    return int(any(r.difference > _allowed(r.name) for r in results))


def _allowed(name: str) -> float:
    return _CLOSE_INTEGERS if "int8" in name else _CLOSE


if __name__ == "__main__":
    sys.exit(main())

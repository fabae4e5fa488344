"""``litecl compare``: checks whether a benchmark has become slower."""

import argparse
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from litecl.cli.command import Output
from litecl.cli.tables import milliseconds, table
from litecl.delegate.naming import counted
from litecl.interpreter.errors import ModelError
from litecl.perf import compare

HELP = "compare two results of `litecl bench --json`; exit with 1 if the new one is slower"
EXAMPLES = """\
litecl compare old.json new.json
litecl compare old.json new.json --fail-above 10%
litecl compare old.json new.json --fail-above 0% --json
litecl bench model.tflite --json > new.json && litecl compare old.json new.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("old", type=Path, metavar="OLD.json", help="the output of an earlier `litecl bench --json`")
    parser.add_argument("new", type=Path, metavar="NEW.json", help="the output of a newer one")
    parser.add_argument(
        "--fail-above",
        type=_percent,
        default=0.05,
        metavar="N%",
        help="allowed slowdown of the median (default: 5%%); ignores differences that may be chance",
    )


def run(args: argparse.Namespace) -> Output:
    """Compare two results. The exit code is 1 if a runtime in both has become slower."""
    old, new = compare.load(args.old), compare.load(args.new)
    changes = compare.changes(old, new, args.fail_above)
    if not changes:
        raise ModelError(f"{args.old} and {args.new} have no runtime in common")
    view = table("runtime", "old median ms", "new median ms", "new / old", "chance", "verdict")
    for change in changes:
        times = milliseconds(change.old_ms), milliseconds(change.new_ms), f"{change.ratio:.3f}"
        view.add_row(change.name, *times, f"{change.chance:.2g}", change.verdict)
    unpaired, notes, ops = compare.unpaired(old, new), compare.differences(old, new), compare.operators(old, new)
    by_op = table("operator", "old device ms", "new device ms", "difference ms")
    for op, before, after in ops:
        by_op.add_row(op, milliseconds(before), milliseconds(after), f"{after - before:+.3g}")
    data = {
        "changes": [asdict(change) | {"ratio": change.ratio} for change in changes],
        "unpaired": unpaired,
        "differences": notes,
        "operators": [{"op": op, "old_ms": before, "new_ms": after} for op, before, after in ops],
    }
    slower = sum(change.verdict == "slower" for change in changes)
    verdict = f"{counted(slower, 'runtime')} of {len(changes)} slower than before" if slower else "no runtime is slower"
    return Output(data, [view, *([by_op] if ops else []), *map(Text, (verdict, *unpaired, *notes))], int(slower > 0))


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a percentage such as 5%, got {text!r}")
    return value

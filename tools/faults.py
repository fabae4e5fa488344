"""Fails each call of a back end once, in every model and mode, and prints at how many places the model was right.

    PYTHONPATH=tests python -m tools.faults opencl|native [--models NAME...] [--modes MODE...] [--how HOW...] [--each N]

Calls of OpenCL, or what ``native`` asks of the system; each fails with and without ``strict``, and as Ctrl-C.
"""

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from support import native_faults, opencl_faults, pocl_processor
from support.fault_models import subjects
from support.fault_places import HOW


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the places where something is wrong; return 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", choices=("opencl", "native"))
    parser.add_argument("--models", nargs="*", help="only those whose names hold one of these")
    parser.add_argument("--modes", nargs="*", help="only these")
    parser.add_argument("--how", nargs="*", default=HOW, choices=HOW)
    parser.add_argument("--each", type=int, default=1, metavar="N", help="only every Nth place")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="from the Kth place on: others than before")
    args = parser.parse_args(arguments)
    logging.getLogger("litecl").setLevel(logging.ERROR)
    pocl_processor.watch()
    with tempfile.TemporaryDirectory() as folder:
        if args.backend == "opencl":
            modes, places, judge = opencl_faults.MODES, opencl_faults.places, opencl_faults.judge
        else:
            kept = {"kept": Path(folder)}
            modes = native_faults.MODES
            places, judge = partial(native_faults.places, **kept), partial(native_faults.judge, **kept)
        if unknown := {*(args.modes or ())} - {*modes}:
            parser.error(f"no mode is called {', '.join(sorted(unknown))}: {', '.join(modes)}")
        right = total = 0
        named = [s for s in subjects() if not args.models or any(part in s.name for part in args.models)]
        for subject, mode, how in ((s, m, h) for s in named for m in args.modes or modes for h in args.how):
            tried = places(subject, mode, how)[args.first :: args.each]
            wrong = [(place, text) for place in tried if (text := judge(place))]
            total, right = total + len(tried), right + len(tried) - len(wrong)
            print(f"{subject.name}, {mode}, {how}: {len(tried)} places, {len(wrong)} wrong", flush=True)
            for place, text in wrong:
                print(f"  {place}: {text}", flush=True)
    print(f"{total} places, {right} right")
    return int(right != total)


if __name__ == "__main__":
    sys.exit(main())

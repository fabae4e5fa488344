"""A process that runs checks one after another, and may die of one: ``python -m litecl.verify.worker``.

It reads a request, a line of JSON, from stdin: {"devices": [...]} for a description of devices, or {"checks": [...],
"settings": {...}}. On stdout it tells, each in a line: {"devices": ...}; {"begin": CHECK}, {"kernels": ...} once a
check is about to run, {"row": ...}. Output of drivers goes to stderr. It ends when stdin does.
"""

import faulthandler
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from litecl.interpreter.errors import LiteclError
from litecl.verify.judge import Settings, judge

Tell = Callable[..., None]


def main() -> int:
    """Serve one request; return the exit code."""
    tell = teller()
    request = received()
    if "devices" in request:
        return _devices(request["devices"], tell)
    _run(request["checks"], Settings(**request["settings"]), tell)
    return 0


def received() -> Any:
    """Return the request of the process that started this one, and end with that from now on."""
    faulthandler.enable()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return request


def teller() -> Tell:
    """Return what writes a line to the stdout of the start; whatever else is printed goes to stderr from now on."""
    out: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


def _end_with_parent() -> None:
    """End this process once stdin does, even where a kernel hangs, so that none is left behind."""
    while os.read(0, 1):  # not sys.stdin, whose lock Python wants when it ends
        pass
    os._exit(1)


def _devices(wanted: Sequence[str], tell: Tell) -> int:
    from litecl.perf.environment import described

    try:
        tell(devices=described(wanted))
    except LiteclError as error:
        tell(error=f"{type(error).__name__}: {error}")
        return 1
    return 0


def _run(names: Sequence[str], settings: Settings, tell: Tell) -> None:
    from litecl.verify import goldens
    from litecl.verify.catalogue import catalogue

    checks = catalogue()
    stored = goldens.load()
    for name in names:
        tell(begin=name)
        row = judge(checks[name], settings, stored, lambda kernels: tell(kernels=kernels))
        tell(row=asdict(row))


if __name__ == "__main__":
    sys.exit(main())

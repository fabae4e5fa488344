"""A process that runs checks one after another, and may die: ``python -m litecl.verify.worker``.

It reads a request, a line of JSON, from stdin: {"devices": [...]} to describe devices, or {"checks": [...],
"settings": {...}}. It writes lines to stdout: {"devices": ...}; or for each check {"begin": CHECK}, {"kernels": ...}
before its kernels run, and {"row": ...}. Drivers' output goes to stderr. It ends when stdin closes.
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
    """Return the parent's request. From now on, this process ends with its parent."""
    faulthandler.enable()
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return request


def teller() -> Tell:
    """Return a function that writes messages to stdout. From now on, all other output goes to stderr."""
    out: TextIO = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


def _end_with_parent() -> None:
    """End this process when stdin closes, even if a kernel hangs."""
    while os.read(0, 1):  # not sys.stdin: Python needs its lock to exit
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

"""A process that runs checks on a runtime, and may die: ``python -m litecl.conformance.worker``.

It reads a request, a line of JSON, from stdin: {"runtime": {...}} for the runtime's description, or {"runtime": {...},
"checks": [...]}; "rows": [...] asks it to minimize these rows' checks. A runtime is {"name": ...} or {"command": ...},
with "numbers" if these aren't the reference's.
It writes {"described": ...}, or {"begin": CHECK} and {"row": ...} for each, to stdout, like ``litecl.verify.worker``.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from litecl.conformance.runtimes import Suspect, command, suspect
from litecl.interpreter.errors import LiteclError
from litecl.verify.record import row
from litecl.verify.worker import Tell, received, teller


def main() -> int:
    """Serve one request; return the exit code."""
    tell = teller()
    request = received()
    try:
        runtime = _runtime(request["runtime"])
    except LiteclError as error:
        tell(error=str(error))
        return 1
    if "rows" in request:
        _shrink(request, runtime, tell)
    elif "checks" in request:
        _run(request["checks"], runtime, tell)
    else:
        tell(described=runtime.described())
    return 0


def _runtime(given: Mapping[str, str]) -> Suspect:
    numbers: Any = given.get("numbers", "reference")
    return command(given["command"], numbers) if "command" in given else suspect(given["name"], numbers)


def _run(names: Sequence[str], runtime: Suspect, tell: Tell) -> None:
    from litecl.conformance.catalogue import check_of
    from litecl.conformance.judge import judge

    for name in names:
        tell(begin=name)
        tell(row=asdict(judge(check_of(name), runtime)))


def _shrink(request: Mapping[str, Any], runtime: Suspect, tell: Tell) -> None:
    from litecl.conformance.catalogue import check_of
    from litecl.conformance.shrink import shrunk

    for data in request["rows"]:
        shown = row(data)
        tell(begin=shown.check)
        folder = None if request["folder"] is None else Path(request["folder"]) / folder_of(shown.check)
        tell(row=asdict(shrunk(check_of(shown.check), shown, runtime, request["timeout_s"], folder)))


def folder_of(check: str) -> str:
    """Return a check's folder name."""
    return "".join(c if c.isalnum() or c in "-_.," else "_" for c in check)


if __name__ == "__main__":
    sys.exit(main())

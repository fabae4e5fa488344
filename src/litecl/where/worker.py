"""A process that runs specimens on a runtime, and may die: ``python -m litecl.where.worker``.

It reads a request, a line of JSON, from stdin: {"runtime": NAME} to describe it, {"runtime": NAME, "specimens": [NAME,
...]}, or {"runtime": NAME, "model": PATH, "seed": N} to run a whole model. It writes {"described": ...}, {"begin":
NAME} and {"seen": ...} for each, or {"measured": ...}, to stdout, like ``litecl.verify.worker``.
"""

import sys
from pathlib import Path

from litecl.conformance.runtimes import suspect
from litecl.interpreter.errors import LiteclError
from litecl.verify.worker import received, teller


def main() -> int:
    """Serve one request; return the exit code."""
    tell = teller()
    request = received()
    try:
        runtime = suspect(request["runtime"], strict=False)
    except LiteclError as error:
        tell(error=str(error))
        return 1
    if "model" in request:
        from litecl.where.measure import measured

        tell(begin=request["model"])
        tell(measured=measured(Path(request["model"]).read_bytes(), runtime, request["seed"]))
    elif "specimens" in request:
        from litecl.where.observe import observe
        from litecl.where.specimens import load

        for name in request["specimens"]:
            tell(begin=name)
            seen = observe(load(name), runtime)
            tell(seen=None if seen is None else seen.to_dict())
    else:
        tell(described=runtime.described())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the outputs of LiteRT's reference kernels that ``litecl verify`` compares with: src/litecl/verify/goldens.npz.

Of the cases of a quick run, those with small outputs. One whose case has changed counts as none; where many have, a
test asks for this.

Usage: PYTHONPATH=tests .venv/bin/python -m tools.goldens
"""

import io
import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

from litecl.verify import goldens
from litecl.verify.catalogue import catalogue, named_cases, quick_cases
from support import all_cases

FILE = Path(__file__).resolve().parents[1] / "src" / "litecl" / "verify" / goldens.FILE
_MOST_BYTES = 4096  # of a case's outputs


def made() -> goldens.Goldens:
    """Return the outputs of LiteRT of this environment."""
    cases, checks = named_cases(), catalogue()
    outputs = {name: all_cases.expected(cases[name]) for name in sorted(quick_cases())}
    kept = {name: found for name, found in outputs.items() if sum(x.nbytes for x in found) <= _MOST_BYTES}
    digests = {name: goldens.digest(checks[name].model(), checks[name].steps()) for name in kept}
    return goldens.Goldens(version("ai-edge-litert"), digests, kept)


def packed(found: goldens.Goldens) -> bytes:
    """Return goldens as a file's content."""
    names = sorted(found.outputs)
    head = {
        "litert": found.version,
        "checks": [(name, found.digests[name], len(found.outputs[name])) for name in names],
    }
    arrays = {f"{n}.{i}": x for n, name in enumerate(names) for i, x in enumerate(found.outputs[name])}
    out = io.BytesIO()
    np.savez_compressed(out, head=np.array(json.dumps(head)), **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def main() -> int:
    """Write the file."""
    found = made()
    FILE.write_bytes(packed(found))
    print(f"{FILE}: {len(found.outputs)} cases, {FILE.stat().st_size} bytes, LiteRT {found.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

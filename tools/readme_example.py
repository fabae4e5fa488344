"""Runs the README's examples: the first on the sample, the second where TensorFlow is installed."""

import os
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from litecl import sample

README = Path(__file__).resolve().parents[1] / "README.md"


def main() -> None:
    """Run what the README prints, and check that the device took the whole model."""
    run, convert = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sample.write(Path())
        for example in (run, convert) if find_spec("tensorflow") else (run,):
            scope: dict[str, Any] = {}
            exec(compile(example, str(README), "exec"), scope)
            report = scope["interpreter"].delegation_report()
            assert all(row.claimed for row in report.nodes), str(report)
        os.chdir("/")


if __name__ == "__main__":
    main()

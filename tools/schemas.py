"""Writes JSON schemas of what commands print with ``--json`` into docs/schemas/: ``python -m tools.schemas``.

Read the difference that git shows before you keep it: some follow from what the commands print of the sample.
"""

import json
import tempfile
from pathlib import Path

from litecl import sample
from support.schemas import FOLDER, schemas

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        sample.write(Path(scratch))
        for title, schema in schemas(Path(scratch)).items():
            (FOLDER / f"{title}.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")

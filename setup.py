"""Refuses to build from a checkout without symbolic links, and puts a bill of materials into the wheel (PEP 770).

Everything else is declared in pyproject.toml.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

_PACKAGES = Path(__file__).resolve().parent / "src" / "litecl"
_PARTS = ("cases", "converter", "delegate", "interpreter", "kernels_cl", "perf", "random_graphs")

_absent = [name for name in _PARTS if not (_PACKAGES / name / "__init__.py").is_file()]
if _absent:
    sys.exit(
        f"src/litecl: {', '.join(_absent)}: expected packages, got none there. In a checkout these are symbolic links "
        "to its folders: clone again where links are allowed (git config --global core.symlinks true; on "
        "Windows also Developer Mode), not from a ZIP file, or install the wheel or the sdist."
    )

_GROUPS = {
    "kernels": ("kernels_cl/", "OpenCL C, compiled on the user's machine"),
    "goldens": ("verify/goldens.npz", "outputs of LiteRT's reference kernels for random inputs (tools/goldens.py)"),
    "table of runtimes": ("where/table.json", "what other runtimes did with each kind of node (litecl verify --table)"),
    "pages of reports": ("report/templates/", "templates, styles and scripts of HTML pages; they load nothing else"),
    "templates of exports": ("delegate/export/templates/", "what litecl export puts beside a compiled model"),
}
"""What is in the wheel besides Python: the name of a group, where its files are in litecl/, and what they are."""
_THIRD_PARTY = (
    {
        "type": "data",
        "name": "TensorFlow Lite schema, version 3",
        "description": "names and numbers of the file format's tables, in litecl/interpreter/file/",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "copyright": "The TensorFlow Authors",
        "externalReferences": [{"type": "vcs", "url": "https://github.com/tensorflow/tensorflow"}],
    },
    {
        "type": "data",
        "name": "LiteRT-LM header schema",
        "description": "names and numbers of .litertlm bundles' tables, in litecl/generate/litertlm.py",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "copyright": "The Google AI Edge Authors",
        "externalReferences": [{"type": "vcs", "url": "https://github.com/google-ai-edge/LiteRT-LM"}],
    },
)


class _WithBill(bdist_wheel):
    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)
        bill = Path(distinfo_path, "sboms", "litecl.cdx.json")
        bill.parent.mkdir()
        bill.write_text(json.dumps(self._bill(), indent=1) + "\n", encoding="utf-8")

    def _bill(self) -> dict[str, Any]:
        """Return the bill in CycloneDX's JSON. It has no time and no number, so that a build can be repeated."""
        version = self.distribution.metadata.version
        purl = f"pkg:pypi/litecl@{version}"
        itself = {"type": "library", "name": "litecl", "version": version, "purl": purl, "licenses": _OWN}
        groups = [
            {"type": "data", "name": name, "description": text, "licenses": _OWN, "components": _files(start)}
            for name, (start, text) in _GROUPS.items()
        ]
        return {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": itself},
            "components": [*groups, *_THIRD_PARTY],
        }


_OWN = [{"license": {"id": "Apache-2.0"}}]


def _files(start: str) -> list[dict[str, Any]]:
    """Return files of a folder, or one file, as components."""
    at = _PACKAGES / start
    return [
        {
            "type": "file",
            "name": f"litecl/{path.relative_to(_PACKAGES).as_posix()}",
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        }
        for path in ([at] if at.is_file() else sorted(at.iterdir()))
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]


setup(cmdclass={"bdist_wheel": _WithBill})

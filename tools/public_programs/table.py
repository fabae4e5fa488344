"""The public programs of ``programs.csv``."""

import csv
from dataclasses import dataclass
from pathlib import Path

NEEDS = (
    "annotated-types",
    "appdirs==1.4.4",
    "click",
    "docopt==0.6.2",
    "fcache==0.6.0",
    "onnxoptimizer==0.4.2",
    "onnxsim==0.6.5",
    "opencv-python-headless==5.0.0.93",
    "prettyprinter==0.18.0",
    "psutil",
    "pydantic==2.14.4",
    "pydantic-core==2.50.5",
    "pylru==1.3.3",
    "pymicro-features==2.0.2",
    "pyserial==3.5",
    "sne4onnx==2.0.1",
    "sng4onnx==2.0.1",
    "tabulate==0.10.0",
    "tqdm",
    "typing-inspection",
)
"""Packages that the programs import besides. Others are stand-ins, in the drivers."""


@dataclass(frozen=True)
class Program:
    """A package of PyPI, or a file of a repository.

    name: of the package, or OWNER/REPOSITORY. version: of the package, or the first digits of the commit.
    file: where it is in the repository, or empty.
    task, imports: for the table of docs/measurements/public_programs.md.
    tensorflow: litecl stands in for TensorFlow's interpreter, else for ``ai_edge_litert`` and ``tflite_runtime``.
    integers: LiteRT uses its reference kernels, since its default ones round differently.
    """

    group: str
    name: str
    version: str
    file: str
    task: str
    imports: str
    tensorflow: bool
    integers: bool

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}" + (f", `{Path(self.file).name}`" if self.file else "")

    @property
    def driver(self) -> str:
        """The name of the script in ``drive/`` that uses the program."""
        return (Path(self.file).stem if self.file else self.name).lower().replace("-", "_")


def programs() -> list[Program]:
    """Return all of them, in the order of the table."""
    with (Path(__file__).parent / "programs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    flags = ("tensorflow", "integers")
    return [Program(**{**row, **{flag: row[flag] == "yes" for flag in flags}}) for row in rows]

"""The folder ``../shared`` beside the project: real models and published goldens that are not part of it."""

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODELS = SHARED / "models"
GOLDEN = SHARED / "golden"

needs_shared = pytest.mark.skipif(
    not (MODELS / "MODELS.csv").is_file(), reason="../shared (real models and goldens) is not beside this checkout"
)


@dataclass(frozen=True)
class RealModel:
    """A row of MODELS.csv."""

    file: str
    kind: str
    note: str

    @property
    def path(self) -> Path:
        """Return where the model lies."""
        return MODELS / self.file


def rows() -> list[dict[str, str]]:
    """MODELS.csv, empty where ``../shared`` is absent."""
    table = MODELS / "MODELS.csv"
    if not table.is_file():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def invoked(*kinds: str) -> list[RealModel]:
    """The models of some kinds that LiteRT loads and invokes."""
    wanted = [row for row in rows() if row["litert_invokes"] == "True" and row["kind"] in kinds]
    return [RealModel(row["file"], row["kind"], row["litert_note"]) for row in wanted]


def model_file(name: str) -> Path:
    """Return a model's file. Skips where it is missing."""
    if not (MODELS / name).is_file():
        pytest.skip(f"../shared/models/{name} is not beside this checkout")
    return MODELS / name

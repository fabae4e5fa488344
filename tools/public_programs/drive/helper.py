"""What the drivers share: stand-ins for hardware, inputs, published models, and the record of results."""

import atexit
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

MODELS = Path(os.environ["PUBLIC_MODELS"])
PROGRAM = Path(os.environ["PUBLIC_PROGRAM"])
RNG = np.random.default_rng(7)
np.random.seed(7)  # programs draw from it
_kept: dict[str, np.ndarray] = {}
_made: list[str] = []


def keep(name: str, value: Any) -> None:
    """Record a result of the program: numbers, or text, as which everything else is kept."""
    array = np.asarray(value)
    _kept[name] = np.asarray(str(value)) if array.dtype == object else array


def model(name: str) -> str:
    """Return the path of a published model."""
    return str(MODELS / name)


def stub(*names: str) -> MagicMock:
    """Put stand-ins in the place of modules that the program imports but does not need here; return the last."""
    for name in names:
        module = MagicMock(name=name)
        module.__spec__ = ModuleSpec(name, None)
        module.__path__ = []
        sys.modules[name] = module
    return module


def photo(height: int = 240, width: int = 320) -> np.ndarray:
    """Return an image of noise and two boxes, uint8."""
    image = RNG.integers(0, 60, (height, width, 3)).astype(np.uint8)
    image[height // 4 : -height // 4, width // 4 : -width // 3] = (200, 190, 150)
    image[height // 3 : -height // 3, width // 3 : -width // 2] = (30, 60, 150)
    return image


def face(size: int = 240) -> np.ndarray:
    """Return a drawn face, uint8."""
    y, x = np.mgrid[:size, :size] * 240 / size
    image = np.full((size, size, 3), 200, np.uint8)
    image[((x - 120) ** 2 / 60**2 + (y - 120) ** 2 / 80**2) < 1] = (220, 180, 150)
    image[((x - 95) ** 2 + (y - 100) ** 2 < 60) | ((x - 145) ** 2 + (y - 100) ** 2 < 60)] = 20
    image[(abs(y - 163) < 3) & (abs(x - 120) < 20)] = (150, 40, 40)
    return image


def voice(seconds: float, rate: int = 16000) -> np.ndarray:
    """Return a tone that rises, with noise: float32 between -1 and 1."""
    time = np.arange(int(seconds * rate)) / rate
    tone = 0.3 * np.sin(2 * np.pi * (200 + 150 * time) * time) * (1 + np.sin(9 * time)) / 2
    return (tone + 0.02 * RNG.standard_normal(len(time))).astype(np.float32)


def spoken(seconds: float) -> np.ndarray:
    """Return the same as 16-bit samples."""
    return (voice(seconds) * 20000).astype(np.int16)


def _count_litecl() -> None:
    """Count the objects of litecl that the program makes, so that a run beside litecl is noticed."""
    from litecl.compiled_model import CompiledModel
    from litecl.interpreter import Interpreter

    for kind, method in ((Interpreter, "__init__"), (CompiledModel, "run_by_index"), (CompiledModel, "run_by_name")):
        _counted(kind, method)


def _counted(kind: type, method: str) -> None:
    original = getattr(kind, method)

    def call(self: Any, *args: Any, **options: Any) -> Any:
        _made.append(kind.__name__)
        return original(self, *args, **options)

    setattr(kind, method, call)


def _save() -> None:
    np.savez(os.environ["PUBLIC_RESULT"], __made__=len(_made), **_kept)


if "litecl" in sys.modules:
    _count_litecl()
atexit.register(_save)

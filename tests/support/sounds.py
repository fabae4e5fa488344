"""Sounds for tests, in files, and inputs that take them."""

import wave
from pathlib import Path
from typing import Any

import numpy as np


def detail(shape: list[int], dtype: Any = np.float32, signature: list[int] | None = None) -> dict[str, Any]:
    """Return the details of an input."""
    return {"name": "sound", "shape": shape, "shape_signature": signature or shape, "dtype": dtype}


def wav(path: Path, samples: np.ndarray, rate: int, width: int = 2, channels: int = 1) -> Path:
    """Write samples of -1 to 1, of several channels in turns, as a .wav file of a width in bytes."""
    whole = np.rint(samples * (2 ** (8 * width - 1) - 1)).astype(np.int64) + (128 if width == 1 else 0)
    raw = whole.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw.tobytes())
    return path


def sine(hertz: float, rate: int, seconds: float) -> np.ndarray:
    """Return a tone of half of the largest amplitude."""
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)

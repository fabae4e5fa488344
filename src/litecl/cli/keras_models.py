"""Loads Keras models from files. Keras is an optional dependency, imported on use."""

from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ConversionError


def load(path: Path) -> Any:
    """Load a .keras or .h5 file. Raises ConversionError for a file that Keras can't load."""
    import keras

    try:
        return keras.models.load_model(path, compile=False)
    except (ValueError, TypeError) as error:
        raise ConversionError(f"{path}: Keras does not load it: {error}") from error

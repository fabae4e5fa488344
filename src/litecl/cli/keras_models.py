"""Keras models from files. Keras is an optional dependency, imported only when it is needed."""

from pathlib import Path
from typing import Any

from litecl.interpreter.errors import ConversionError


def load(path: Path) -> Any:
    """Return the model in a .keras or .h5 file. Raises ConversionError for a file that Keras does not load."""
    import keras

    try:
        return keras.models.load_model(path, compile=False)
    except (ValueError, TypeError) as error:
        raise ConversionError(f"{path}: Keras does not load it: {error}") from error

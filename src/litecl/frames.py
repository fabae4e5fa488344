"""Batches from pandas or polars data frames, and results as data frames."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from litecl.interpreter.data_frame import Library, of_columns
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape


class Results(dict[str, Any]):
    """A dictionary of a batch's outputs and kept columns by name."""

    def frame(self, library: Library | None = None) -> Any:
        """Return a data frame with a row for each row of the batch and a column for each output.

        A cell holds a row's single value, or a longer row as an array in pandas and a list in polars. library: by
        default pandas, or polars if only that is installed. Raises ShapeError for outputs of different row counts, and
        MissingExtra if neither is installed.
        """
        arrays = {name: np.asarray(value) for name, value in self.items()}
        rows = {name: len(value) if value.ndim else 0 for name, value in arrays.items()}
        if len({*rows.values()}) > 1 or 0 in {value.ndim for value in arrays.values()}:
            raise ShapeError(f"a data frame: expected equal row counts, got {rows}")
        return of_columns({name: _column(value) for name, value in arrays.items()}, library)


def _column(value: Array) -> Any:
    """Return an output as a data frame column, one value per row."""
    if prod(value.shape[1:]) == 1:
        return value.reshape(len(value))
    return [*value] if value.ndim == 2 else [row.tolist() for row in value]


def is_frame(batch: Any) -> bool:
    """Return whether a batch is a data frame."""
    return hasattr(batch, "columns") and hasattr(batch, "to_numpy")


def from_frame(frame: Any, inputs: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the columns of a data frame by name, as arrays.

    Rows of arrays or lists become one array; single values get the dimensions of size 1 that their input has.
    """
    return {name: _values(frame[name].to_numpy(), inputs.get(name)) for name in frame.columns}


def _values(column: Array, shape: Shape | None) -> Array:
    if column.dtype == np.object_ and len(column) and isinstance(column[0], np.ndarray | list):
        column = np.stack([np.asarray(row) for row in column])
    if shape is not None and column.ndim == 1 and len(shape) > 1 and prod(shape[1:]) == 1:
        return column.reshape(-1, *shape[1:])
    return column

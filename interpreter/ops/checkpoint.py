"""litecl.Save and litecl.Restore: write tensors to a file by name, and read them back.

The operands are a path, names, and for Save one tensor per name; Restore has one result per name. The file is one of
numpy's .npz archives, which ``numpy.load`` reads, whatever its name. A model has access to no file unless the program
that loads it names a folder, with ``checkpoint_ops``.
"""

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from litecl.interpreter.errors import FAULTS, ModelError, ModelFileError, ModelFileNotFound, ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType
from litecl.interpreter.whole_files import whole_file

if TYPE_CHECKING:
    from zipfile import ZipFile

_STRING = TensorType.STRING


def _infer_save(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    _, names = _path_and_names(inputs)
    tensors = require.present(inputs, len(inputs))[2:]
    if names.size != len(tensors):
        raise ShapeError(f"{names.size} names for {len(tensors)} tensors")
    for tensor in tensors:
        if tensor.type == _STRING:
            raise UnsupportedOp(f"{tensor.name!r} holds strings, which a checkpoint cannot store")
    return []


def _infer_restore(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    _, names = _path_and_names(inputs)
    return [TensorSpec(TensorType.FLOAT32, None) for _ in range(names.size)]


def _path_and_names(inputs: Specs) -> Sequence[TensorSpec]:
    path, names = require.typed(inputs, _STRING, _STRING)
    if path.size != 1:
        raise ShapeError(f"expected one path, got shape {list(path.static_shape)}")
    return path, names


def _save(folder: Path | None, options: NoOptions, inputs: Inputs) -> list[Array]:
    """Write a new file, which replaces the earlier one once it is complete."""
    path, names = _given(folder, inputs)
    if len(set(names)) < len(names):
        raise ModelError(f"expected distinct names, got {names}")
    from zipfile import ZipFile  # few models use files

    with _file_errors(path), whole_file(path) as file, ZipFile(file, "w") as archive:
        for name, tensor in zip(names, inputs[2:], strict=True):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(tensor), allow_pickle=False)
    return []


def _restore(
    folder: Path | None, options: NoOptions, inputs: Inputs, declared: Sequence[TensorSpec] = ()
) -> list[Array]:
    path, names = _given(folder, inputs)
    from zipfile import ZipFile

    with _file_errors(path), ZipFile(path) as archive:
        missing = sorted(set(names) - {entry.removesuffix(".npy") for entry in archive.namelist()})
        if missing:
            raise ModelError(f"{path} has no tensor {missing[0]!r}")
        specs = [*declared, *[None] * (len(names) - len(declared))]
        return [_entry(archive, name, spec) for name, spec in zip(names, specs, strict=True)]


def _entry(archive: "ZipFile", name: str, spec: TensorSpec | None) -> Array:
    """Read a tensor of the type and shape that the model declares, and nothing else."""
    with archive.open(f"{name}.npy") as file:
        shape, dtype = _header(file)
        if spec is not None and (dtype != spec.dtype or spec.shape not in (None, shape)):
            expected = spec.dtype if spec.shape is None else f"{spec.dtype}{list(spec.static_shape)}"
            raise ShapeError(f"{name!r} of {archive.filename}: expected {expected}, got {dtype}{list(shape)}")
    with archive.open(f"{name}.npy") as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _given(folder: Path | None, inputs: Inputs) -> tuple[Path, list[str]]:
    """Return the file, which must lie in the folder, and the names."""
    if folder is None:
        raise ModelError("this model uses files: load it with custom_ops=checkpoint_ops(folder)")
    given, names = (list(map(_text, array.reshape(-1))) for array in require.arrays(inputs, 2))
    path = (folder / given[0]).resolve()
    if folder not in path.parents:
        raise ModelError(f"the model may use files of {folder}, and asks for {given[0]!r}")
    return path, names


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Raise a file's faults as a ModelFileError."""
    from zipfile import BadZipFile

    try:
        yield
    except FileNotFoundError as error:
        raise ModelFileNotFound(f"{path}: {error.strerror}") from error
    except (ModelError, MemoryError):
        raise
    except (OSError, EOFError, RuntimeError, BadZipFile, zlib.error, *FAULTS) as error:
        raise ModelFileError(f"{path}: {error}") from error


def _bind_restore(folder: Path | None, options: NoOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    return partial(_restore, folder, declared=tuple(outputs))


def _ops(folder: Path | None) -> tuple[Op, Op]:
    save = Op("litecl.Save", NoOptions, _infer_save, partial(_save, folder), pure=False, custom=True)
    restore = replace(
        save,
        name="litecl.Restore",
        infer=_infer_restore,
        run=partial(_restore, folder),
        bind=partial(_bind_restore, folder),
        declared_types=True,
        declared_shapes=True,
    )
    return save, restore


SAVE, RESTORE = _ops(None)


def checkpoint_ops(folder: str | os.PathLike[str]) -> Mapping[str, Op]:
    """Return operators, for ``custom_ops``, by which a model saves tensors in files of a folder and restores them.

    The model's paths are relative to the folder, or lie in it. Raises ModelFileNotFound if there is no such folder.
    """
    path = Path(folder).resolve()
    if not path.is_dir():
        raise ModelFileNotFound(f"{folder} is not a folder")
    return {op.name: op for op in _ops(path)}

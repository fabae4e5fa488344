"""Runs a model on many inputs, split into parts. Each can run anywhere, and again, and writes a whole file or none."""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from litecl.delegate.claim.options import CLOptions
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.dynamic_range import is_dynamic
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.file.reader import content_of, read
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.tensor_files import opened
from litecl.interpreter.whole_files import is_left, made_folder, put_text, whole_file
from litecl.jobs.given import Media, load_all
from litecl.predictor import Predictor

ITEM = "item"  # the array of a part that names each row's input
_HOPELESS = 16  # if this many files are a whole part and all unreadable, the files aren't the problem


@dataclass(frozen=True)
class Job:
    """A job, which goes to every worker.

    model, files, folder: absolute paths. rows: each row of the only file is an input; else each file is one, an .npz
    file if the model has several inputs.
    batch: inputs to run at once. part: inputs whose results share a file. options: of ``Predictor``.
    """

    model: str
    files: tuple[str, ...]
    folder: str
    rows: bool = False
    batch: int = 1
    part: int = 1024
    media: Media = field(default_factory=Media)
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def count(self) -> int:
        """The number of inputs. Raises ModelError for a file without rows."""
        if not self.rows:
            return len(self.files)
        value = _mapped(self.files[0])
        if not value.ndim:
            raise ModelError(f"{self.files[0]}: expected an array with rows, got a single number")
        return len(value)

    @property
    def parts(self) -> int:
        """The number of parts."""
        return math.ceil(self.count / self.part)

    def path(self, number: int) -> Path:
        """Return the file of a part."""
        return Path(self.folder) / f"part-{number:06d}.npz"

    def missing(self) -> list[int]:
        """Return the parts still to run."""
        there = {path.name for path in Path(self.folder).glob("part-*.npz")}
        return [number for number in range(self.parts) if self.path(number).name not in there]

    def outdated(self) -> list[int]:
        """Return the parts with an input that was written after they began to read their inputs."""
        return [number for number in range(self.parts) if self._is_outdated(number)]

    def _is_outdated(self, number: int) -> bool:
        written_ns = _written_ns(self.path(number))
        files = self.files if self.rows else (self.files[i] for i in self.items(number))
        return written_ns > 0 and any(_written_ns(file) >= written_ns for file in files)

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Begin, and run parts within; if that raises before the first part is complete, leave nothing."""
        folder = Path(self.folder)
        description = folder / "job.json"
        is_new = not description.exists()
        with made_folder(folder):
            try:
                self.begin()
                yield
            except BaseException:
                if is_new and not any(folder.glob("part-*")):
                    description.unlink(missing_ok=True)
                raise

    def begin(self) -> None:
        """Describe the job in its folder. Raises ModelError if that is another job's or its description is damaged."""
        path = Path(self.folder) / "job.json"
        described = {
            "model": self.model,
            "sha256": hashlib.sha256(content_of(self.model)).hexdigest(),
            "inputs": hashlib.sha256("\n".join(self.files).encode()).hexdigest(),
            "count": self.count,
            "part": self.part,
            "signature": self.options.get("signature"),
            "media": {name: getattr(self.media, name) for name in ("mean", "std", "rate", "features", "hop_ms")},
            "dynamic_range": self._mode if is_dynamic(read(self.model)) else None,
            "numbers": None if self.options.get("numbers") in (None, "reference") else self.options["numbers"],
        }
        before = _object(path) if path.exists() else described
        if other := [name for name, value in described.items() if before.get(name) != value]:
            raise ModelError(f"{self.folder}: holds parts of another job ({', '.join(other)} differ): use a new folder")
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        for half in Path(self.folder).iterdir():  # what workers left that died while writing
            with suppress(FileNotFoundError):
                if is_left(half.name, half.lstat()):
                    half.unlink()
        put_text(path, json.dumps(described, indent=1))

    @property
    def _mode(self) -> str:
        """The dynamic range mode of predictors with these options."""
        usual = "reference" if self.options.get("cpu") else CLOptions().dynamic_range
        return self.options.get("dynamic_range") or usual

    def unreadable(self) -> dict[str, str]:
        """Return the unreadable input files of parts that have run, with the reason. Raises ModelError for a damaged
        record.
        """
        parts = sorted(Path(self.folder).glob("part-*.json"))
        return {name: reason for path in parts for name, reason in _object(path).items()}

    def items(self, number: int) -> range:
        """Return the inputs of a part."""
        return range(number * self.part, min(self.count, (number + 1) * self.part))

    def named(self, items: Iterable[int]) -> Array:
        """Return the inputs' names in results: numbers of rows, or paths of files relative to their common folder."""
        if self.rows:
            return np.array([*items])
        return np.array([os.path.relpath(self.files[i], self._common) for i in items])

    @cached_property
    def _common(self) -> str:
        return os.path.commonpath([Path(file).parent for file in self.files])


@dataclass(frozen=True)
class Done:
    """A part that has run. seconds: on its worker. worker: its process ID. devices: their names; "none" is numpy."""

    number: int
    inputs: int
    seconds: float
    worker: int
    devices: str


def run_part(job: Job, number: int) -> Done:
    """Run a part and write its file: outputs by name, and ``item``, the paths of files or the numbers of rows.

    Leaves out files that can't be read or don't fit, and lists them with the reason in a JSON file beside it. If that
    leaves none of many files, or of the only part, raises the first one's error. Writes nothing before all results are
    complete; a part gives the same file wherever and however often it runs.
    """
    start_s, start_ns = time.perf_counter(), time.time_ns()
    predictor = _predictor(job.model, tuple(sorted(job.options.items())))
    items, faults = job.items(number), dict[int, Exception]()
    starts = range(items.start, items.stop, job.batch)
    batches = (_batch(job, predictor, range(i, min(items.stop, i + job.batch)), faults) for i in starts)
    results = [*predictor.map(filter(None, batches))]
    if len(faults) == len(items) and (len(items) >= _HOPELESS or job.parts == 1):
        raise faults[items.start]
    read = [i for i in items if i not in faults]
    outputs = predictor.outputs if results else ()
    arrays = {name: np.concatenate([result[name] for result in results]) for name in outputs}
    for name, value in arrays.items():
        if len(value) != len(read):
            of_rows = "" if job.rows else "; each file is one input, and --rows runs each row of a .npy file"
            wanted = f"expected a row for each of {len(read)} inputs, got {len(value)}"
            raise ModelError(f"output {name!r}: {wanted}{of_rows}")
    if ITEM in arrays:
        raise ModelError(f"output {ITEM!r}: a part uses this name for the inputs' names")
    path = job.path(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    reasons = dict(zip(job.named(faults).tolist(), map(str, faults.values()), strict=True))
    if reasons:
        put_text(path.with_suffix(".json"), json.dumps(reasons, indent=1))
    else:
        path.with_suffix(".json").unlink(missing_ok=True)
    with whole_file(path) as file:
        _save_as_of(start_ns, file, {ITEM: job.named(read), **arrays})
    return Done(number, len(items), time.perf_counter() - start_s, os.getpid(), ", ".join(predictor.devices))


@lru_cache(maxsize=2)
def _predictor(model: str, options: tuple[tuple[str, Any], ...]) -> Predictor:
    """Return this process's predictor, created for its first part and reused for the others."""
    return Predictor(model, **dict(options))


@lru_cache(maxsize=2)
def _mapped(file: str) -> Array:
    with opened(file, "a .npy file", mmap_mode="r") as value:
        if not isinstance(value, np.ndarray):
            saved = f"np.save('rows.npy', np.load({Path(file).name!r})[{next(iter(value), '')!r}])"
            raise ModelError(
                f"{file}: expected one array (.npy), got an archive of {[*value]}; {saved} writes such a file"
            )
        return value


def _batch(job: Job, predictor: Predictor, items: range, faults: dict[int, Exception]) -> dict[str, Array]:
    """Load inputs as rows, adding files that can't be read to ``faults``."""
    shapes = predictor.inputs
    if job.rows:
        if len(shapes) != 1:
            raise ModelError(f"--rows: expected a model of one input, got {[*shapes]}")
        return {name: np.ascontiguousarray(_mapped(job.files[0])[items.start : items.stop]) for name in shapes}
    lane = predictor._lanes[0]
    media = replace(job.media, model=lane.interpreter.model, subgraph=lane.subgraph)
    details = [
        {
            "name": name,
            "index": lane.inputs[name].tensor,
            "shape": np.maximum(shape, 1),
            "shape_signature": shape,
            "dtype": dtype,
            "quantization": lane.inputs[name].quantization,
        }
        for name, (shape, dtype) in shapes.items()
    ]
    values = []
    for i in items:
        try:
            values.append(load_all(Path(job.files[i]), details, media))
        except (ModelError, OSError) as error:
            faults[i] = error
    if not values:
        return {}
    return {name: _together([each[name] for each in values], shape) for name, (shape, _) in shapes.items()}


def _together(values: Sequence[Array], shape: Shape) -> Array:
    """Join an input's values as rows. Raises ShapeError if their shapes differ."""
    shapes = sorted({value.shape for value in values})
    if len(shapes) != 1:
        raise ShapeError(
            f"--batch {len(values)}: expected inputs of one shape, got {[*map(list, shapes)]}; use --batch 1"
        )
    return np.concatenate(values) if values[0].ndim and shape[0] in (1, -1) else np.stack(values)


def _save_as_of(time_ns: int, file: IO[bytes], arrays: dict[str, Array]) -> None:
    """Write an .npz file whose time is that at which its inputs were read; see ``Job.outdated``."""
    np.savez(file, **arrays)  # type: ignore[arg-type]
    file.flush()
    os.utime(file.name, ns=(time_ns, time_ns))


def _written_ns(file: str | Path) -> int:
    """Return when a file was written last, or 0 if there is none."""
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


def _object(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises ModelError for any other content."""
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: damaged, expected JSON ({error}): use a new folder") from error
    if not isinstance(data, dict):
        raise ModelError(f"{path}: damaged, expected an object of JSON, got {type(data).__name__}: use a new folder")
    return data

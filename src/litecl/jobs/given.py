"""Loads a user's input values: arrays in files, raw bytes, images, sounds, and folders of these."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.feeding import fits
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.tensor_files import opened
from litecl.jobs.audio import Features, as_input, read_sound
from litecl.jobs.metadata import Normalization, normalization, sample_rate
from litecl.perf.feeds import Details, labels

SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff")
_USUAL, _RATE = 127.5, 16000  # if neither flags nor metadata give it
_ORIENTATION = 274  # of EXIF
_TURNS = {  # by orientation. Pillow's exif_transpose raises errors of many types where EXIF is damaged
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_COLOURS = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's modes, by channels


@dataclass(frozen=True)
class Media:
    """How to convert images and sounds to input values.

    Pixels of 0 to 255 become floats as (pixel - mean) / std, as in TFLite's label_image. A mean or std of None comes
    from the model's metadata (``metadata.Normalization``), else it is 127.5. uint8 inputs get pixels unchanged, as in
    MediaPipe. int8 inputs get pixel - 128, or the value quantized by the metadata and the input's scale if that differs
    by more than a step.

    rate: the sample rate that the model expects in Hz; None is the metadata's, else 16000. features: the file of a
    model that computes features of a sound every hop_ms (``audio.Features``).
    model, subgraph: whose metadata to read; None reads none.
    """

    mean: float | None = None
    std: float | None = None
    rate: int | None = None
    features: str | None = None
    hop_ms: float = 20.0
    model: Model | None = field(default=None, compare=False, repr=False)
    subgraph: int = 0

    def pixels(self, detail: Details, channels: int) -> "Pixels":
        """Return how pixels become an input's values. Raises ModelError for a type that can't take images."""
        dtype = np.dtype(detail["dtype"])
        if dtype == np.uint8:
            return Pixels("as they are")
        metadata = None
        if self.model is not None and (dtype == np.int8 or None in (self.mean, self.std)):
            metadata = normalization(self.model, self.subgraph, int(detail["index"]), channels)
        if dtype == np.int8:
            scale, zero = detail.get("quantization", (0.0, 0))
            exact = Pixels("metadata", metadata, scale, zero)
            return exact if metadata is not None and scale and exact.shifts else Pixels("less 128")
        if dtype.kind != "f":
            raise ModelError(f"an image cannot be the value of an input of {dtype}")
        usual = (_USUAL,) * channels
        given = Normalization(
            (metadata.mean if metadata else usual) if self.mean is None else (self.mean,) * channels,
            (metadata.std if metadata else usual) if self.std is None else (self.std,) * channels,
        )
        flags = [each for each in (self.mean, self.std) if each is not None]
        by = ["flags"] * bool(flags) + ["metadata" if metadata else "default"] * (len(flags) < 2)
        return Pixels(" and ".join(by), given)

    def rate_of(self, detail: Details) -> int:
        """Return the sample rate that an input expects, in Hz."""
        if self.rate is not None:
            return self.rate
        declared = None if self.model is None else sample_rate(self.model, self.subgraph, int(detail["index"]))
        return declared or _RATE


@dataclass(frozen=True)
class Pixels:
    """How pixels become values. by: where the rule comes from. normalization: None shifts pixels to the type's range.

    scale, zero: quantize normalized values to int8; a scale of 0 leaves floats.
    """

    by: str
    normalization: Normalization | None = None
    scale: float = 0.0
    zero: int = 0

    @property
    def shifts(self) -> bool:
        """True if quantization maps any pixel more than a step away from pixel - 128."""
        pixels = np.arange(256).reshape(1, 256, 1)
        return bool((np.abs(self.of(pixels, np.dtype(np.int8)).astype(np.int64) - (pixels - 128)) > 1).any())

    def of(self, image: Array, dtype: np.dtype[Any]) -> Array:
        """Return the values of an image [height, width, channels] of 0 to 255."""
        if self.normalization is None:
            return image if dtype == np.uint8 else (image.astype(np.int16) - 128).astype(np.int8)
        mean, std = (np.array(each, np.float32) for each in (self.normalization.mean, self.normalization.std))
        value: Array = (image.astype(np.float32) - mean) / std
        if self.scale:
            info = np.iinfo(dtype)
            value = np.clip(np.round(value / np.float32(self.scale)) + self.zero, info.min, info.max)
        return value.astype(dtype)

    def described(self) -> dict[str, Any]:
        """Return the conversion as JSON-compatible values."""
        known = self.normalization
        return {"pixels": self.by, "mean": known and [*known.mean], "std": known and [*known.std]}


def how_read(given: Sequence[str], details: Sequence[Details], media: Media) -> list[dict[str, Any]]:
    """Describe how the images and sounds of arguments NAME=FILE, or FILE, become input values.

    Raises ModelError as ``load_inputs``.
    """
    by_label, rows = dict(zip(labels(details), details, strict=True)), list[dict[str, Any]]()
    for label, path in (pair for argument in given for pair in assigned(argument, [*by_label])):
        suffix, detail = path.suffix.lower(), by_label[label]
        if suffix in SOUNDS:
            rows.append({"input": label, "file": str(path), "rate": media.rate_of(detail)})
        elif suffix not in READERS:
            channels = _image_axes(path, label, detail)[2]
            rows.append({"input": label, "file": str(path), **media.pixels(detail, channels).described()})
    return rows


def load_inputs(given: Sequence[str], details: Sequence[Details], media: Media | None = None) -> dict[str, Array]:
    """Load arrays by label for arguments NAME=FILE, or FILE alone if it names its inputs or the model has only one.

    A file is .npy, .npz (arrays by name), raw bytes (.raw, .bin), a sound (``SOUNDS``) or an image; a folder has a
    file for each input. Raises ModelError for an unknown name or an unreadable file, ShapeError for a wrong shape.
    """
    by_label = dict(zip(labels(details), details, strict=True))
    files = (pair for argument in given for pair in assigned(argument, [*by_label]))
    return {label: _load(path, label, by_label[label], media or Media()) for label, path in files}


def load_all(path: Path, details: Sequence[Details], media: Media) -> dict[str, Array]:
    """Load the value of every input by label from one file; several inputs need an .npz file.

    Raises ModelError and ShapeError.
    """
    by_label = dict(zip(labels(details), details, strict=True))
    named = _in_file(path, [*by_label])
    if {label for label, _ in named} != {*by_label}:
        raise ModelError(f"{path}: expected a value for each of {[*by_label]}, got {[label for label, _ in named]}")
    values = {label: _load(path, label, by_label[label], media) for label, _ in named}
    for label, value in values.items():
        wanted = np.dtype(by_label[label]["dtype"])
        if wanted.kind not in "OS" and value.dtype != wanted:
            raise ShapeError(f"{path}: input {label!r}: expected {wanted}, got {value.dtype}")
    return values


def _load(path: Path, label: str, detail: Details, media: Media) -> Array:
    """Load one input's value from a file. Raises ModelError and ShapeError."""
    suffix = path.suffix.lower()
    value = READERS.get(suffix, _image)(path, label, detail, media)
    _require_shape(value, label, detail)
    return value


def assigned(argument: str, known: list[str]) -> list[tuple[str, Path]]:
    """Return the labels and files that an argument assigns. known: the model's labels. Raises ModelError."""
    name, separator, file = argument.rpartition("=")
    if separator:
        return [(_label(name, known), Path(file))]
    path = Path(argument)
    if path.is_dir():
        files = sorted(path.iterdir())
        if not files:
            raise ModelError(f"--input: expected files named after {known} in {path}, got an empty folder")
        return [(_label(each.stem, known, f"; each file of {path} is one"), each) for each in files]
    return _in_file(path, known)


def _in_file(path: Path, known: list[str]) -> list[tuple[str, Path]]:
    """Return the labels of the inputs whose values a file holds. Raises ModelError if it can't be known."""
    if len(known) == 1 and path.suffix != ".npz":
        return [(known[0], path)]
    if path.suffix != ".npz":
        raise ModelError(f"--input: expected NAME=FILE, got '{path}'; the model has {known}")
    with opened(path, "a .npz file") as arrays:
        names = _names(path, arrays)
    if not names:
        raise ModelError(f"{path}: expected arrays for {known}, got none")
    if len(known) == len(names) == 1:
        return [(known[0], path)]
    return [(_label(name, known), path) for name in names]


def _label(name: str, known: list[str], where: str = "") -> str:
    """Return the label for a label or a position. where: the name's origin, for an error."""
    if name in known:
        return name
    if name.isdecimal() and int(name) < len(known):
        return known[int(name)]
    many = " (--inputs runs the model on each of many files)" if where else ""
    raise ModelError(f"--input: there is no input {name!r}{where}; the model has {known}{many}")


def _require_shape(value: Array, label: str, detail: Details) -> None:
    """Raise ShapeError unless a value has the input's shape, apart from open dimensions."""
    shape = tuple(int(n) for n in detail["shape"])
    open_ = tuple(int(n) for n in detail.get("shape_signature", shape)) or shape
    if value.shape != shape and not fits(value.shape, open_):
        raise ShapeError(
            f"input {label!r}: expected shape {[*open_]}, got {[*value.shape]}; "
            f"--shape {label}={','.join(map(str, value.shape))} sets this shape"
        )


def _npy(path: Path, label: str, detail: Details, media: Media) -> Array:
    with opened(path, "a .npy file") as value:
        if not isinstance(value, np.ndarray):
            raise ModelError(f"{path}: expected one array (.npy), got an archive of {[*value]}")
        return value


def _names(path: Path, arrays: Any) -> list[str]:
    if isinstance(arrays, np.ndarray):
        raise ModelError(f"{path}: expected arrays by name (.npz), got one array")
    return list(arrays.files)


def _npz(path: Path, label: str, detail: Details, media: Media) -> Array:
    with opened(path, "a .npz file") as arrays:
        names = _names(path, arrays)
        if label not in names and len(names) != 1:
            raise ModelError(f"{path}: expected an array {label!r}, or one alone, got {names}")
        return np.asarray(arrays[label if label in names else names[0]])


def _raw(path: Path, label: str, detail: Details, media: Media) -> Array:
    """Read bytes as an array of the input's type and shape; a single open dimension follows from their number."""
    content, dtype = path.read_bytes(), np.dtype(detail["dtype"])
    shape = [int(n) for n in detail["shape"]]
    signature = [int(n) for n in detail.get("shape_signature", shape)] or shape
    if signature.count(-1) == 1 and (rest := -dtype.itemsize * int(np.prod(signature))) and len(content) % rest == 0:
        shape = [len(content) // rest if n == -1 else n for n in signature]
    size = dtype.itemsize * int(np.prod(shape))
    if dtype.kind == "O" or len(content) != size:
        raise ModelError(f"{path}: expected {size} bytes for {dtype}{shape} of input {label!r}, got {len(content)}")
    return np.frombuffer(content, dtype).reshape(shape)


def _image(path: Path, label: str, detail: Details, media: Media) -> Array:
    """Load an image in an input's size and channels: [1, height, width, channels], or channels first."""
    first, size, channels = _image_axes(path, label, detail)
    array = pixels_of(path, _COLOURS[channels], size)
    value = media.pixels(detail, channels).of(array.reshape(*array.shape[:2], -1), np.dtype(detail["dtype"]))
    return np.ascontiguousarray(np.moveaxis(value, -1, 0) if first else value)[None]


def _image_axes(path: Path, label: str, detail: Details) -> tuple[bool, tuple[int, int] | None, int]:
    """Return whether an input's channels are first, its size (width, height) if fixed, and its channels."""
    shape = [int(n) for n in detail["shape"]]
    signature = [int(n) for n in detail.get("shape_signature", shape)] or shape
    first = len(shape) == 4 and shape[3] not in _COLOURS and shape[1] in _COLOURS
    if len(shape) != 4 or shape[1 if first else 3] not in _COLOURS:
        others = f".npy, .npz, .raw or .bin file, or a sound ({', '.join(SOUNDS)}),"
        raise ModelError(f"{path}: expected a {others} for input {label!r} of shape {shape}")
    *_, height, width = shape if first else shape[:3]
    fixed = -1 not in (signature[2:] if first else signature[1:3])
    return first, (width, height) if fixed else None, shape[1 if first else 3]


def pixels_of(path: Path, mode: str, size: tuple[int, int] | None) -> Array:
    """Return an image's pixels [height, width(, channels)], resized bilinearly to (width, height).

    Photos are turned as their cameras say; of 16 bits the higher eight count.
    """
    content = path.read_bytes()
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise ModelError(f"{path}: images need Pillow: pip install 'litecl[images]'") from error
    try:
        with Image.open(io.BytesIO(content)) as opened:
            opened.load()
            turn = _TURNS.get(opened.getexif().get(_ORIENTATION))
            image = opened.transpose(Image.Transpose[turn]) if turn else opened.copy()
    except UnidentifiedImageError as error:
        raise ModelError(f"{path}: expected a .npy, .npz, .raw or .bin file, or an image that Pillow reads") from error
    except Exception as error:  # damaged bytes: whatever Pillow's readers raise
        raise ModelError(f"{path}: a damaged image: {error}") from error
    if image.mode in ("I", "F"):  # which Pillow would cut off at 255
        raise ModelError(f"{path}: expected pixels of 8 or 16 bits, got the mode {image.mode}: make it a .npy file")
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    image = image.convert(mode)
    if size is not None and image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(image, np.uint8)


def _sound(path: Path, label: str, detail: Details, media: Media) -> Array:
    rate = media.rate_of(detail)
    sound = read_sound(path, rate)
    if media.features is not None:  # a new one per sound: a front end has states, such as its noise estimate
        return Features(media.features, rate, media.hop_ms).of(sound, detail, str(path))
    return as_input(sound, detail, rate, str(path))


READERS: Mapping[str, Callable[[Path, str, Details, Media], Array]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".raw": _raw,
    ".bin": _raw,
    **dict.fromkeys(SOUNDS, _sound),
}
"""By suffix; any other file is an image."""

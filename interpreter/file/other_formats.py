"""Names files of other formats, with what to do next, where a ``.tflite`` file was expected."""

import re
from collections.abc import Iterator

_CONVERT = "litecl convert makes a .tflite file of it"
_DIRECTORY, _NAME = 1 << 20, 256  # bytes that are read, at most, of a zip file's directory and of a member's name
_BY_START = (
    (rb"LITERTLM", "a bundle of a language model, not a .tflite file: litecl generate and litecl.Generator read it"),
    (rb"version https://git-lfs", "a Git LFS pointer, not the file that it stands for: git lfs pull fetches that"),
    (rb"\s*<(?i:!doctype html|html|head|\?xml)", "a web page, no model: get the file itself, its raw download"),
    (rb"\x1f\x8b", "a file compressed by gzip: gunzip unpacks it"),
    (rb"BZh|\xfd7zXZ|\x28\xb5\x2f\xfd", "a compressed file: unpack it first"),
    (rb"\x89HDF\r\n\x1a\n", f"an HDF5 file, as Keras writes: {_CONVERT}"),
    (rb"\x80\x02", "a pickle, as torch.save writes: export the model by torch.export.save, then litecl convert"),
    (rb"\x08\x01\x12", "the saved_model.pb of a SavedModel: litecl convert takes the folder that it lies in"),
    (rb"\x08[\x03-\x1f]\x12", f"an ONNX model: {_CONVERT}"),
    (rb"\x93NUMPY", "an array of numpy, no model"),
    (rb"\s*[{\[]\s*\"", "a JSON file, no model"),
)
"""The beginning of a file, and what it is."""
_BY_MEMBER = (
    (r"model\.weights\.h5", f"a Keras model: {_CONVERT}"),
    (r"(.*/)?models/.*\.json", f"a program of torch.export: {_CONVERT}"),
    (r"(.*/)?data\.pkl", "a PyTorch model: export it by torch.export.save, then litecl convert"),
    (r"(.*/)?saved_model\.pb", "a SavedModel in a zip file: unzip it, then litecl convert takes the folder"),
    (
        r"(.*/)?TF_LITE_\w+|.*\.tflite",
        "a bundle of several files: unzip it, or, of a language model, use litecl.Generator",
    ),
    (r"(?s:.*)", "a zip file"),
)
"""A member of a zip file, and what the file is."""


def described(content: memoryview) -> str | None:
    """Return what a file without TFLite's identifier is, and the next step; None if that is unknown."""
    start = bytes(content[:256])
    if start.startswith(b"PK\x03\x04"):
        return _zipped(content)
    return next((text for pattern, text in _BY_START if re.match(pattern, start)), None)


def _zipped(content: memoryview) -> str:
    end = bytes(content[-_DIRECTORY:])
    members = [*_members(end)] if b"PK\x05\x06" in end else []
    fitting = (text for pattern, text in _BY_MEMBER if any(re.fullmatch(pattern, member) for member in members))
    return next(fitting, "a damaged zip file")


def _members(end: bytes) -> Iterator[str]:
    """Yield the members' names in a zip file's directory, which lies at its end."""
    for entry in re.finditer(rb"PK\x01\x02.{24}(..).{16}", end, re.DOTALL):
        length = min(int.from_bytes(entry[1], "little"), _NAME)
        yield end[entry.end() : entry.end() + length].decode(errors="replace")

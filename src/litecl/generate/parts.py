"""Finds the files of a generator, in a bundle or side by side."""

import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from litecl.generate import litertlm, tokenizers
from litecl.generate.metadata import Metadata, metadata
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, brief
from litecl.interpreter.file import external
from litecl.interpreter.file.external import Find
from litecl.interpreter.file.other_formats import described
from litecl.interpreter.file.reader import content_of
from litecl.interpreter.file.tables import FILE_IDENTIFIER
from litecl.interpreter.regular_files import open_regular

_EMBEDDERS = {"embedder": "embeddings", "per_layer_embedder": "per_layer_embeddings"}
_MODEL = "prefill_decode"
_ZIP, _TFLITE = b"PK\x03\x04", "TF_LITE_"
_ZIP_FAULTS = (  # raised for damaged lengths, offsets, methods and names
    *(zipfile.BadZipFile, zipfile.LargeZipFile, struct.error),
    *(EOFError, OSError, NotImplementedError, RuntimeError, ValueError),
)


@dataclass(frozen=True)
class File:
    """The content of a ``.tflite`` file. find: finds the other files that hold its constants."""

    content: memoryview
    find: Find


@dataclass(frozen=True)
class Parts:
    """model: the file with the signatures. embedders: the files that compute its inputs, by input name.

    tokenizer: loads it; None if there is none. template: a file beside it with a chat template.
    """

    model: File
    embedders: Mapping[str, File] = field(default_factory=dict)
    tokenizer: Callable[[], Tokenizer] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    template: Path | None = None


def read(path: Path) -> Parts:
    """Return the parts of a ``.litertlm`` or ``.task`` bundle, or of a ``.tflite`` file and the files beside it.

    Raises ModelError, which names the file, if it is damaged or lacks the model, and ModelFileError.
    """
    content = content_of(path)
    try:
        if content[:8] == litertlm.MAGIC:
            return _litertlm(content)
        if content[:4] == _ZIP:
            return _task(content)
        if content[4:8] != FILE_IDENTIFIER:
            got = described(content) or "none of these"
            raise ModelError(f"expected a .litertlm or .task bundle, or a .tflite file, got {got}")
        return _beside(path, content)
    except ModelError as error:
        error.add_note(f"in {path}")
        raise


def _litertlm(content: memoryview) -> Parts:
    sections = litertlm.sections(content)
    weights = {
        section.type or _MODEL: {external.SECTION: section.content} for section in sections if section.kind == "weights"
    }
    contents = {section.type or _MODEL: section.content for section in sections if section.kind == "model"}
    models = {type_: File(each, external.given(weights.get(type_, {}))) for type_, each in contents.items()}
    by_kind = {section.kind: section.content for section in reversed(sections)}
    tokenizer: Callable[[], Tokenizer] | None = None
    if "SentencePiece tokenizer" in by_kind:
        tokenizer = partial(tokenizers.load, bytes(by_kind["SentencePiece tokenizer"]))
    elif "JSON tokenizer" in by_kind:
        tokenizer = partial(tokenizers.load, litertlm.unpacked(by_kind["JSON tokenizer"]))
    llm, executor = (bytes(by_kind.get(kind, b"")) for kind in ("metadata", "executor metadata"))
    return _parts("a .litertlm bundle", models, tokenizer, metadata(llm, executor))


def _task(content: memoryview) -> Parts:
    """Read a zip file with uncompressed entries: https://ai.google.dev/edge/mediapipe (model asset bundles)."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            held = {entry.filename: _stored(archive, entry) for entry in archive.infolist() if _is_read(entry)}
    except ModelError:
        raise
    except _ZIP_FAULTS as error:
        raise ModelError(f"the bundle is no zip file that can be read: {error}") from error
    models = {
        name.removeprefix(_TFLITE).lower(): File(memoryview(each), external.given({}))
        for name, each in held.items()
        if name.startswith(_TFLITE)
    }
    tokenizer = partial(tokenizers.load, held["TOKENIZER_MODEL"]) if "TOKENIZER_MODEL" in held else None
    return _parts("a .task bundle", models, tokenizer, _llm_metadata(held.get("METADATA", b"")))


def _is_read(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith(_TFLITE) or entry.filename in ("TOKENIZER_MODEL", "METADATA")


def _stored(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry. Raises ModelError for a compressed one, which could expand to any size."""
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ModelError(f"{brief(entry.filename)}: expected an entry that is not compressed, as runtimes map it")
    return archive.read(entry)


def _llm_metadata(content: bytes) -> Metadata:
    """Decode metadata. Older bundles store another message, without a start token: they get defaults."""
    try:
        declared = metadata(content)
    except ModelError:
        return Metadata()
    return Metadata() if declared.start is None else declared


def _parts(kind: str, models: Mapping[str, File], tokenizer: Callable[[], Tokenizer] | None, given: Metadata) -> Parts:
    if _MODEL not in models:
        raise ModelError(f"{kind} without the model {_MODEL!r}; it has {sorted(models)}")
    embedders = {name: models[type_] for type_, name in _EMBEDDERS.items() if type_ in models}
    return Parts(models[_MODEL], embedders, tokenizer, given)


def file(path: Path) -> File:
    """Open a ``.tflite`` file."""
    return File(content_of(path), external.beside(path, content_of))


def _beside(path: Path, content: memoryview) -> Parts:
    paths = {name: path.with_name(f"{type_}.tflite") for type_, name in _EMBEDDERS.items()}
    embedders = {name: file(each) for name, each in paths.items() if each.is_file()}
    stored = tokenizers.beside(path)
    tokenizer = None if stored is None else partial(tokenizers.from_file, stored)
    names = (path.with_name(name) for name in ("chat_template.jinja", "tokenizer_config.json"))
    template = next((each for each in names if each.is_file()), None)
    return Parts(File(content, external.beside(path, content_of)), embedders, tokenizer, template=template)


def template_source(path: Path) -> str | None:
    """Return the template in a file: in Jinja, or in a ``tokenizer_config.json``, None if that has none.

    Of several the one called "default". Raises ModelError for a file that can't be read.
    """
    try:
        with open_regular(path) as file:
            text = file.read().decode()
        if path.suffix != ".json":
            return text
        given = json.loads(text).get("chat_template")
        if isinstance(given, list):
            given = {each["name"]: each["template"] for each in given}.get("default")
    except (OSError, ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
        raise ModelError(f"chat template: {path} cannot be read ({type(error).__name__}: {error})") from error
    return given if isinstance(given, str) else None

"""Files that are appended to a model stay with it, wherever it is written: names of classes, vocabularies."""

import io
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from litecl.interpreter.file import associated
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.unary import TANH
from support import shared
from support.build import Graph, model
from support.described import appended

_FILES = {"labels.txt": "ant\nbee\n", "vocab/words.txt": "a\n" * 500, "empty.txt": ""}


def _model(constants: int = 8) -> Model:
    g = Graph()
    x = g.op(ADD, [g.input((1, constants)), g.const(np.arange(constants, dtype=np.float32))], AddOptions())
    return model(g.build(g.op(TANH, [x], NoOptions())))


def _check(content: bytes) -> None:
    """Require the files, where their offsets say: minizip, which MediaPipe reads them by, looks nowhere else."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name).decode() for name in archive.namelist()} == _FILES
        directory = archive.start_dir
    size, offset = struct.unpack_from("<II", content, content.rfind(b"PK\x05\x06") + 12)
    assert offset == directory and content[directory : directory + 4] == b"PK\x01\x02"
    at = directory
    while at < directory + size:
        name, extra, comment = struct.unpack_from("<HHH", content, at + 28)
        (local,) = struct.unpack_from("<I", content, at + 42)
        assert content[local : local + 4] == b"PK\x03\x04"
        at += 46 + name + extra + comment


def test_files_follow_the_model_to_another_size() -> None:
    content = appended(write(_model()), _FILES)
    _check(content)
    small = read(content)
    _check(write(small))
    _check(small.associated)
    assert write(read(write(small))) == write(small)
    large = replace(_model(10_000), associated=small.associated)
    for made in (write(large), write(large, inline_limit_bytes=0)):
        _check(made)
        again = read(made)
        assert again.associated == small.associated
        _check(write(replace(small, associated=again.associated)))  # to a smaller one


def test_a_zip_that_was_joined_by_copying_is_read_too() -> None:
    """Its offsets count from its own start."""
    zipped = read(appended(write(_model()), _FILES)).associated
    _check(write(read(write(_model()) + zipped)))


def test_a_comment_stays() -> None:
    file = io.BytesIO(write(_model()))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.txt", "ant")
        archive.comment = b"of ants" * 1000
    with zipfile.ZipFile(io.BytesIO(write(read(file.getvalue())))) as archive:
        assert archive.comment == b"of ants" * 1000 and archive.read("labels.txt") == b"ant"


def test_bytes_that_are_no_zip_are_none() -> None:
    content = appended(write(_model()), _FILES)
    plain = write(_model())
    end = content.rfind(b"PK\x05\x06")
    wrong = [plain, plain + b"PK\x05\x06", content + b"!", content[:-1]]
    wrong += [content[: end + at] + b"\xff\x7f" + content[end + at + 2 :] for at in range(4, 22, 2)]
    local = content.find(b"PK\x03\x04")
    wrong.append(content[:local] + b"??" + content[local + 2 :])
    for each in wrong:
        assert associated.read(memoryview(each)) == b""


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_damaged_directory_raises_nothing_but_what_a_model_raises(cut: int) -> None:
    content = bytearray(appended(write(_model()), _FILES))
    content[-1 - cut] ^= 0xFF
    read(bytes(content))


@shared.needs_shared
def test_labels_of_a_published_model_stay() -> None:
    content = shared.model_file("google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite").read_bytes()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as before,
        zipfile.ZipFile(io.BytesIO(write(read(content)))) as after,
    ):
        assert after.read("imagenet_labels.txt") == before.read("imagenet_labels.txt")

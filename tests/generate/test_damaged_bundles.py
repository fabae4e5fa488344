"""Damaged bundles: cut short, of another version, with parts that are absent or elsewhere."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litecl import Generator
from litecl.generate import litertlm, parts
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write, write_file
from support import tokenizers as small
from support.bundles import LM, builder, bundle
from support.damage import changed_bytes, changed_words


def test_cut_short(tmp_path: Path) -> None:
    """Wherever a bundle is cut, an error says so and names the file."""
    content = bundle(tmp_path).read_bytes()
    cuts = [*range(0, 800, 9), *range(801, len(content), 7001), len(content) - 1]
    for size in cuts:
        (tmp_path / "cut.litertlm").write_bytes(content[:size])
        with pytest.raises(ModelError) as caught:
            Generator(tmp_path / "cut.litertlm", cpu=True)
        assert "cut.litertlm" in "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_bits_that_flipped(tmp_path: Path) -> None:
    """Every byte of the header: nothing but typed errors."""
    content = bytearray(bundle(tmp_path).read_bytes())
    rng = np.random.default_rng(1)
    for position in range(struct.unpack_from("<Q", content, 24)[0]):
        damaged = content[:]
        damaged[position] ^= int(rng.integers(1, 256))
        try:
            litertlm.sections(memoryview(damaged))
        except ModelError:
            continue


def _zip(how: int) -> bytes:
    """A ``.task`` bundle. how: its entries are compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("TF_LITE_PREFILL_DECODE", write(LM.model()))
        archive.writestr("TOKENIZER_MODEL", small.sentencepiece())
    return file.getvalue()


KINDS: dict[str, Callable[[Path], bytes]] = {
    "litertlm": lambda folder: bundle(folder).read_bytes(),
    "litertlm, SentencePiece": lambda folder: bundle(folder, tokenizer="sp").read_bytes(),
    "task": lambda _: _zip(zipfile.ZIP_STORED),
    "task, compressed": lambda _: _zip(zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_words_anywhere(kind: str, tmp_path: Path) -> None:
    """The parts are read, or refused with typed errors; two in three are damaged where the structure lies."""
    content, file = KINDS[kind](tmp_path), tmp_path / "damaged"
    size = len(content)
    for number in range(240):
        start, end = ((0, 400), (size - 400, size), (0, size))[number % 3]
        change = changed_bytes if number % 2 else changed_words
        damaged = content[:start] + change(content[start:end], np.random.default_rng(number)) + content[end:]
        file.write_bytes(damaged)
        try:
            found = parts.read(file)
            if found.tokenizer is not None:
                found.tokenizer()
        except ModelError as error:
            assert str(error)


def test_entries_that_are_compressed(tmp_path: Path) -> None:
    """They are none of MediaPipe's, and a few bytes could hold gigabytes."""
    (tmp_path / "model.task").write_bytes(_zip(zipfile.ZIP_DEFLATED))
    with pytest.raises(ModelError, match="TF_LITE_PREFILL_DECODE: expected an entry that is not compressed"):
        parts.read(tmp_path / "model.task")


def changed(offset: int, kind: str, value: int) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        made = bytearray(content)
        struct.pack_into(kind, made, offset, value)
        return bytes(made)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(8, "<I", 2), r"a bundle of version 2\.\d+\.0: expected 1\.x"),
        (changed(8, "<I", 0), r"a bundle of version 0\.\d+\.0: expected 1\.x"),
        (changed(24, "<Q", 1 << 60), "the list of sections ends at"),
        (changed(24, "<Q", 8), "the list of sections ends at 8"),
        (changed(24, "<Q", 36), "FlatBuffer"),
    ],
)
def test_headers(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    content = change(bundle(tmp_path).read_bytes())
    with pytest.raises(ModelError, match=message):
        litertlm.sections(memoryview(content))


def test_a_section_outside(tmp_path: Path) -> None:
    content = bytearray(bundle(tmp_path).read_bytes())
    size, ends = len(content), struct.unpack_from("<Q", content, 24)[0]
    last = max(litertlm.sections(memoryview(content)), key=lambda section: len(section.content))
    end = next(o for o in range(32, ends - 7) if struct.unpack_from("<Q", content, o)[0] == size)
    assert len(last.content) < size
    for wrong in (size + 1, 1 << 63, 0):
        struct.pack_into("<Q", content, end, wrong)
        said = rf"section \d \(model 'prefill_decode'\): bytes \d+ to {wrong}, in a bundle of {size} bytes"
        with pytest.raises(ModelError, match=said + (": it is cut short" if wrong else "$")):
            litertlm.sections(memoryview(content))


def test_a_bundle_cut_short(tmp_path: Path) -> None:
    """Names the file and its first section that isn't whole."""
    path = bundle(tmp_path)
    whole = path.read_bytes()
    last = r"section \d \(model 'prefill_decode'\)"
    for size, said in ((100, "the list of sections ends at"), (len(whole) - 1, last)):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=rf"{said}.*, in a bundle of {size} bytes: it is cut short") as caught:
            Generator(path)
        assert caught.value.__notes__ == [f"in {path}"]


def test_what_is_no_bundle(tmp_path: Path) -> None:
    path = tmp_path / "model.litertlm"
    path.write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(ModelError, match=r"expected a .litertlm .*, got a Git LFS pointer.*: git lfs pull"):
        Generator(path)


def test_packed_tokenizers_that_lie(tmp_path: Path) -> None:
    packed = next(s.content for s in litertlm.sections(memoryview(bundle(tmp_path).read_bytes())) if "JSON" in s.kind)
    size = int.from_bytes(packed[:8], "little")
    assert len(litertlm.unpacked(packed)) == size
    for wrong, message in ((size + 1, f"expected {size + 1} bytes"), (size - 1, "got more"), (1 << 40, "at most")):
        with pytest.raises(ModelError, match=message):
            litertlm.unpacked(memoryview(wrong.to_bytes(8, "little") + packed[8:]))
    for content in (packed[:-4], packed[:8], packed[:5], packed[:8].tobytes() + b"no zlib"):
        with pytest.raises(ModelError, match="the tokenizer"):
            litertlm.unpacked(memoryview(content))


def test_without_a_model(tmp_path: Path) -> None:
    made = builder.LitertLmFileBuilder()
    made.add_system_metadata(builder.Metadata(key="Authors", value="tests", dtype=builder.DType.STRING))
    write_file(LM.embedder(), tmp_path / "table.tflite")
    made.add_tflite_model(str(tmp_path / "table.tflite"), builder.TfLiteModelType.EMBEDDER)
    with (tmp_path / "model.litertlm").open("wb") as file:
        made.build(file)
    with pytest.raises(ModelError, match=r"without the model 'prefill_decode'; it has \['embedder'\]"):
        Generator(tmp_path / "model.litertlm")


def test_without_the_embedder(tmp_path: Path) -> None:
    content = memoryview(bundle(tmp_path, embedder=True).read_bytes())
    found = parts.read(tmp_path / "model.litertlm")
    assert [*found.embedders] == ["embeddings"]
    assert len(content) > sum(len(file.content) for file in (found.model, *found.embedders.values()))
    write_file(LM.model(embeddings=True), tmp_path / "alone.tflite")
    with pytest.raises(ModelError, match="which an embedder computes: expected one, got none"):
        Generator(tmp_path / "alone.tflite")

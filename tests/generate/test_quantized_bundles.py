"""Bundles whose models are quantized: every section is kept, and the result generates."""

import io
from pathlib import Path
from typing import Any

import pytest

from litecl import Generator
from litecl.converter import Converter
from litecl.generate import litertlm
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write_file
from support.bundles import LM, bundle
from support.command import data, failure, text


def sections(path: Path) -> list[litertlm.Section]:
    return litertlm.sections(memoryview(path.read_bytes()))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle(tmp_path_factory.mktemp("float"), embedder=True, jinja_prompt_template="{{ messages[0].content }}")


@pytest.mark.parametrize(("flags", "how"), [(("--quantize", "int8"), "int8"), (("--quantize", "float16"), "float16")])
def test_every_section_is_kept(
    path: Path, flags: tuple[str, ...], how: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small.litertlm"
    told = data(capsys, "quantize", path, *flags, "-o", out)
    before, after = sections(path), sections(out)
    assert [(each.kind, each.type) for each in after] == [(each.kind, each.type) for each in before]
    for old, new in zip(before, after, strict=True):
        if old.kind == "model":
            assert new.content == Converter.from_tflite(bytes(old.content), how, roll_up=False).convert()
        else:
            assert new.content == old.content
    assert [each["section"] for each in told["sections"]] == ["prefill_decode", "embedder"]
    assert out.stat().st_size == told["size_bytes"] < told["float_bytes"] == path.stat().st_size
    tokens = [Generator(out, cpu=cpu).generate("the cat", max_tokens=8).tokens for cpu in (True, False)]
    assert tokens[0] == tokens[1]
    assert Generator(out, cpu=True).chat("the cat", max_tokens=8).generation.tokens == tokens[0]


def test_litert_lms_own_reader_reads_it(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its metadata too, and sections begin at blocks."""
    peek = pytest.importorskip("litert_lm_builder.litertlm_peek")
    out = tmp_path / "small.litertlm"
    text(capsys, "quantize", path, "--quantize", "int8", "-o", out)
    header = peek.read_litertlm_header(str(out), io.StringIO())
    assert header.SystemMetadata().Entries(0).Key() == b"Authors"
    objects = [header.SectionMetadata().Objects(n) for n in range(header.SectionMetadata().ObjectsLength())]
    assert len(objects) == 4 and all(each.BeginOffset() % (16 << 10) == 0 for each in objects)
    ends = [each.EndOffset() for each in objects]
    assert max(ends) == out.stat().st_size


def test_refusals(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("quantize", path, "--quantize", "int8", "-o")
    assert "a bundle becomes a bundle: expected -o FILE.litertlm" in failure(capsys, *asked, tmp_path / "x.tflite")
    write_file(LM.model(), tmp_path / "lm.tflite")
    of_file = "quantize", tmp_path / "lm.tflite", "--quantize", "int8", "-o", tmp_path / "x.litertlm"
    assert "a .tflite file becomes a .tflite file: expected -o FILE.tflite" in failure(capsys, *of_file)
    assert not (tmp_path / "x.litertlm").exists()
    damaged = tmp_path / "damaged.litertlm"
    damaged.write_bytes(path.read_bytes()[:-5000])
    assert "ModelError: section" in failure(capsys, "quantize", damaged, "--quantize", "int8", "-o", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ModelError, match="section"):
        litertlm.replaced(memoryview(damaged.read_bytes()), {})
    content = path.read_bytes()
    assert litertlm.replaced(memoryview(content), {}) == content

"""``litecl sample``: the model knows unseen digits, by LiteRT too."""

import re
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl import Generator, sample
from litecl.cli import main
from litecl.generate import litertlm
from litecl.sample.digits import draw
from support.command import data, failure
from support.full_disk import full_disk


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> sample.Sample:
    return sample.write(tmp_path_factory.mktemp("sample") / "new")


def by_litert(path: Path, images: np.ndarray) -> np.ndarray:
    runner = LiteRT(str(path)).get_signature_runner()
    return runner(image=images)["probabilities"]


def test_litert_reads_unseen_digits_with_it(made: sample.Sample) -> None:
    images, digits = np.load(made.images)["image"], np.loadtxt(made.digits, dtype=int)
    assert images.shape == (200, 8, 8, 3) and images.dtype == np.float32 and len(digits) == 200
    assert np.unique(digits).tolist() == [*range(10)]
    assert (by_litert(made.model, images).argmax(1) == digits).mean() > 0.95
    image = np.load(made.image)
    assert image.shape == (1, 8, 8, 3) and by_litert(made.model, image).argmax() == made.shown == digits[0]
    others = draw(300, 99)
    assert (by_litert(made.model, others.pixels).argmax(1) == others.digits).mean() > 0.95
    assert made.model.stat().st_size < 20_000
    (output,) = LiteRT(str(made.model)).get_output_details()
    assert output["shape_signature"].tolist() == [-1, 10]


def test_its_images_are_samples_for_quantization(made: sample.Sample, tmp_path: Path) -> None:
    content = tmp_path / "int8.tflite"
    asked = ["convert", made.model, "-o", content, "--quantize", "int8", "--calibrate", made.images]
    assert main([*map(str, asked)]) == 0
    images, digits = np.load(made.images)["image"], np.loadtxt(made.digits, dtype=int)
    assert (by_litert(content, images).argmax(1) == digits).mean() > 0.93


def test_it_is_the_same_each_time(made: sample.Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "sample", tmp_path)
    assert [Path(row["path"]).name for row in found["files"]] == [
        "model.tflite",
        "image.npy",
        "images.npz",
        "digits.txt",
        "language_model.tflite",
        "tokenizer.json",
        "tokenizer_config.json",
        "language_model.litertlm",
    ]
    assert (tmp_path / "model.tflite").read_bytes() == made.model.read_bytes()
    assert found["shown"] == made.shown


def test_its_language_model_writes_words(made: sample.Sample, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tokenizers", reason="litecl[llm] is not installed")
    assert made.language_model.stat().st_size < 300_000
    asked = ("generate", made.language_model, "--prompt", "the cat sat", "--temperature", 1, "--seed", 1)
    found = data(capsys, *asked, "--cpu", "--max-tokens", 100)
    assert sum(word in found["text"] for word in (" cat", " house", " on", " green", " river")) > 1
    assert found["text"].isprintable() and found["text"].isascii()
    chatted = data(capsys, "chat", made.language_model, "--prompt", "the cat sat on", "--cpu", "--max-tokens", 3)
    assert len(chatted["prompt_tokens"]) == 7 and chatted["message"]["content"]  # t h e, cat, sat, on, the line's end


def test_its_bundle_is_the_same_model(made: sample.Sample) -> None:
    pytest.importorskip("tokenizers", reason="litecl[llm] is not installed")
    alone, bundled = (Generator(path, cpu=True) for path in (made.language_model, made.bundle))
    assert bundled.stop_tokens == alone.stop_tokens == [1] and bundled.context_length == alone.context_length == 256
    content = memoryview(made.bundle.read_bytes())
    assert litertlm.written(litertlm.sections(content)) == content
    asked = {"max_tokens": 12, "temperature": 1.0, "seed": 3}
    assert bundled.generate("the cat", **asked).text == alone.generate("the cat", **asked).text
    assert bundled.has_template and alone.has_template


def test_its_language_model_in_litert(made: sample.Sample) -> None:
    """Of a token alone LiteRT computes the same logits."""
    generator = Generator(made.language_model, cpu=True)
    expected = generator.generate([300], max_tokens=1, logits=True).logits
    runner = LiteRT(str(made.language_model)).get_signature_runner("decode")
    details = runner.get_input_details()
    given = {name: np.zeros(each["shape"], each["dtype"]) for name, each in details.items()}
    given["tokens"][:] = 300
    given["mask"][..., 1:] = -np.inf
    assert expected is not None
    np.testing.assert_allclose(runner(**given)["logits"].reshape(-1), expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("most_bytes", [1000, 100_000])  # the first file, and a later one
def test_a_full_disk_leaves_no_folder(most_bytes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with full_disk(most_bytes):
        failed = failure(capsys, "sample", tmp_path / "a" / "b")
    assert re.match(rf"OSError: {tmp_path}/a/b/\w+\.(tflite|npz): File too large", failed)
    assert not [*tmp_path.iterdir()]


def test_files_of_others_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tokenizer.json").write_text("mine")
    assert main(["sample", str(tmp_path)]) != 0
    assert "tokenizer.json: it is not the sample's" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("tokenizer.json", "mine")]
    (tmp_path / "tokenizer.json").unlink()
    for _ in range(2):  # its own are written anew
        assert main(["sample", str(tmp_path)]) == 0

"""``litecl sample``: the model knows unseen digits, by LiteRT too."""

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl import sample
from litecl.cli import main
from litecl.sample.digits import draw
from support.command import data


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
    ]
    assert (tmp_path / "model.tflite").read_bytes() == made.model.read_bytes()
    assert found["shown"] == made.shown

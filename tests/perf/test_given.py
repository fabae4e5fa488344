"""Values of inputs in files of every kind, and repeated names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from litecl.interpreter.errors import LiteclError, ModelError, ShapeError
from litecl.jobs.given import Media, load_inputs
from litecl.perf.feeds import labels, random_inputs

RNG = np.random.default_rng(31)


def detail(name: str, *shape: int, dtype: Any = np.float32) -> dict[str, Any]:
    """A tensor's dictionary; -1 is an open dimension."""
    return {
        "name": name,
        "shape": np.array([max(1, n) for n in shape], np.int32),
        "shape_signature": np.array(shape, np.int32),
        "dtype": dtype,
    }


def test_by_name_by_position_and_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    details = [detail("a=b", 2)]
    for given in (f"a=b={tmp_path / 'x.npy'}", f"0={tmp_path / 'x.npy'}", str(tmp_path / "x.npy")):
        assert load_inputs([given], details)["a=b"].tolist() == [1.0, 1.0]


def test_names_that_several_inputs_have_are_told_apart(tmp_path: Path) -> None:
    details = [detail("x", 2), detail("y", 2), detail("x", 2)]
    assert labels(details) == ["x#0", "y", "x#2"]
    assert [*random_inputs(details, 1)] == ["x#0", "y", "x#2"]
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    assert [*load_inputs([f"x#2={tmp_path / 'x.npy'}"], details)] == ["x#2"]
    with pytest.raises(ModelError, match=r"there is no input 'x'; the model has \['x#0', 'y', 'x#2'\]"):
        load_inputs([f"x={tmp_path / 'x.npy'}"], details)
    with pytest.raises(ModelError, match="expected NAME=FILE"):
        load_inputs([str(tmp_path / "x.npy")], details)


def test_archives_folders_and_raw_bytes(tmp_path: Path) -> None:
    details = [detail("a", -1, 3), detail("b", 2, dtype=np.int8)]
    a, b = RNG.standard_normal((4, 3)).astype(np.float32), np.array([7, -7], np.int8)
    np.savez(tmp_path / "both.npz", a=a, b=b)
    np.savez(tmp_path / "one.npz", other=b)
    folder = tmp_path / "feeds"
    folder.mkdir()
    np.save(folder / "a.npy", a)
    (folder / "b.raw").write_bytes(b.tobytes())
    for given in ([str(tmp_path / "both.npz")], [str(folder)], [f"a={folder / 'a.npy'}", f"b={tmp_path / 'one.npz'}"]):
        found = load_inputs(given, details)
        np.testing.assert_array_equal(found["a"], a)
        np.testing.assert_array_equal(found["b"], b)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"expected files named after \['a', 'b'\] in .*empty, got an empty folder"):
        load_inputs([str(tmp_path / "empty")], details)
    (tmp_path / "a.bin").write_bytes(a.tobytes())
    np.testing.assert_array_equal(load_inputs([f"a={tmp_path / 'a.bin'}"], details)["a"], a)


def test_an_archive_without_names(tmp_path: Path) -> None:
    """What ``np.savez(file, x)`` calls arr_0 is the input of a model of one."""
    np.savez(tmp_path / "x.npz", np.ones(2, np.float32))
    assert load_inputs([str(tmp_path / "x.npz")], [detail("a", 2)])["a"].tolist() == [1.0, 1.0]
    with pytest.raises(ModelError, match=r"there is no input 'arr_0'; the model has \['a', 'b'\]"):
        load_inputs([str(tmp_path / "x.npz")], [detail("a", 2), detail("b", 2)])


def test_a_folder_of_many_values_of_one_input(tmp_path: Path) -> None:
    np.save(tmp_path / "first.npy", np.ones(2, np.float32))
    with pytest.raises(ModelError, match=r"there is no input 'first'; each file of .*\(--inputs runs the model"):
        load_inputs([str(tmp_path)], [detail("a", 2)])


def _image(path: Path, height: int, width: int) -> np.ndarray:
    pixels = RNG.integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, lambda p: p),
        (np.int8, lambda p: p.astype(int) - 128),
        (np.float32, lambda p: (p.astype(float) - 127.5) / 127.5),
    ],
)
def test_images_become_inputs_as_in_label_image(dtype: Any, expected: Any, tmp_path: Path) -> None:
    pixels = _image(tmp_path / "cat.png", 5, 7)
    given = [str(tmp_path / "cat.png")]
    found = load_inputs(given, [detail("image", 1, 5, 7, 3, dtype=dtype)])["image"]
    assert found.dtype == dtype
    np.testing.assert_allclose(found[0], expected(pixels), atol=1e-6)
    first = load_inputs(given, [detail("image", 1, 3, 5, 7, dtype=dtype)])["image"]
    np.testing.assert_array_equal(first[0], np.moveaxis(found[0], -1, 0))
    assert load_inputs(given, [detail("image", 1, 10, 14, 1, dtype=dtype)])["image"].shape == (1, 10, 14, 1)
    assert load_inputs(given, [detail("image", 1, -1, -1, 3, dtype=dtype)])["image"].shape == (1, 5, 7, 3)


def test_pixels_of_other_ranges(tmp_path: Path) -> None:
    pixels = _image(tmp_path / "cat.png", 2, 2)
    found = load_inputs([str(tmp_path / "cat.png")], [detail("x", 1, 2, 2, 3)], Media(0, 255))["x"]
    np.testing.assert_allclose(found[0], pixels / 255, rtol=1e-6)


def test_pictures_are_read_as_people_see_them(tmp_path: Path) -> None:
    """A photo that says how to turn it, and 16 bits, which Pillow's convert cuts off at 255; 32 bits have no range."""
    pixels = RNG.integers(0, 256, (2, 3, 3), np.uint8)
    exif = Image.Exif()
    exif[274] = 6  # its top is at the right
    Image.fromarray(pixels).save(tmp_path / "photo.png", exif=exif)
    (found,) = load_inputs([str(tmp_path / "photo.png")], [detail("x", 1, -1, -1, 3, dtype=np.uint8)])["x"]
    np.testing.assert_array_equal(found, np.rot90(pixels, -1))
    deep = RNG.integers(0, 1 << 16, (2, 3), np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    (found,) = load_inputs([str(tmp_path / "deep.png")], [detail("x", 1, 2, 3, 1, dtype=np.uint8)])["x"]
    np.testing.assert_array_equal(found[..., 0], deep // 256)
    Image.fromarray(deep.astype(np.float32)).save(tmp_path / "float.tiff")
    with pytest.raises(ModelError, match="expected pixels of 8 or 16 bits, got the mode F"):
        load_inputs([str(tmp_path / "float.tiff")], [detail("x", 1, 2, 3, 1, dtype=np.uint8)])


def _header(text: str) -> bytes:
    """Return a .npy file of a header alone."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


_LARGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (281474976710656,)}"  # a PiB, which no machine allocates


@pytest.mark.parametrize(
    ("file", "content", "shape", "kind", "message"),
    [
        ("x.npy", b"no array", (2,), ModelError, "not a .npy file"),
        ("x.npz", b"no array", (2,), ModelError, "not a .npz file"),
        ("x.npy", _header("{'descr': '<f4', 'fortran_order': False, 'shape': (1"), (2,), ModelError, "not a .npy file"),
        ("x.npy", _header(_LARGE), (2,), ModelError, r"x\.npy: Unable to allocate"),
        ("x.raw", b"abc", (2,), ModelError, r"expected 8 bytes for float32\[2\] of input 'x', got 3"),
        ("x.png", b"no image", (1, 2, 2, 3), ModelError, "or an image"),
        ("x.txt", b"text", (2,), ModelError, "expected a .npy, .npz, .raw or .bin file"),
        ("y.npy", None, (3, 4), ShapeError, r"expected shape \[3, 4\], got \[2\]; --shape x=2 sets this shape"),
    ],
)
def test_what_does_not_fit_is_refused(
    file: str, content: bytes | None, shape: tuple[int, ...], kind: type[LiteclError], message: str, tmp_path: Path
) -> None:
    if content is None:
        np.save(tmp_path / file, np.ones(2, np.float32))
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(kind, match=message):
        load_inputs([f"x={tmp_path / file}"], [detail("x", *shape)])


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["cut.png", "cut.jpg"])
def test_an_image_that_is_cut_off_is_refused(name: str, kept: float, tmp_path: Path) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ModelError, match=name):
        load_inputs([str(tmp_path / name)], [detail("image", 1, 64, 64, 3)])


def test_an_archive_that_zipfile_does_not_unpack_is_refused(tmp_path: Path) -> None:
    """Encrypted, it says; or of a kind of compression that it doesn't know."""
    np.savez(tmp_path / "x.npz", x=np.ones(2, np.float32))
    content = (tmp_path / "x.npz").read_bytes()
    at = content.index(b"PK\x01\x02")
    for place, value, why in ((at + 8, 1, "encrypted"), (at + 10, 9, "compression")):
        changed = bytearray(content)
        changed[place] = value
        (tmp_path / "x.npz").write_bytes(changed)
        with pytest.raises(ModelError, match=rf"x\.npz: not a \.npz file: .*{why}"):
            load_inputs([str(tmp_path / "x.npz")], [detail("x", 2)])


def test_an_image_of_a_kind_that_pillow_does_not_decode_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "x.dds")
    content = bytearray((tmp_path / "x.dds").read_bytes())
    content[80:84] = bytes(4)  # flags of the pixels' format
    (tmp_path / "x.dds").write_bytes(content)
    with pytest.raises(ModelError, match=r"x\.dds: a damaged image"):
        load_inputs([str(tmp_path / "x.dds")], [detail("image", 1, 4, 4, 3)])

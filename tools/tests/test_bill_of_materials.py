"""The bill of materials in the wheel (PEP 770) lists what is in there besides Python, and under which licence."""

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import litecl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(folder.glob("litecl-*.whl"))) as file:
        yield file


@pytest.fixture(scope="module")
def bill(wheel: zipfile.ZipFile) -> Any:
    return json.loads(wheel.read(f"litecl-{litecl.__version__}.dist-info/sboms/litecl.cdx.json"))


def test_every_file_but_python(wheel: zipfile.ZipFile, bill: Any) -> None:
    """No kernel, template or golden is missing, and each has the digest of its bytes."""
    listed = {
        file["name"]: file["hashes"][0]["content"]
        for group in bill["components"]
        for file in group.get("components", ())
    }
    inside = {
        name: hashlib.sha256(wheel.read(name)).hexdigest()
        for name in wheel.namelist()
        if name.startswith("litecl/") and not name.endswith((".py", "/py.typed"))
    }
    assert listed == inside
    assert len(inside) > 100


def test_names_and_licences(bill: Any) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/litecl@{litecl.__version__}"
    assert all(each["licenses"] for each in (bill["metadata"]["component"], *bill["components"]))


def test_as_cyclonedx_says(bill: Any) -> None:
    validation = pytest.importorskip("cyclonedx.validation.json", reason="cyclonedx-python-lib is not installed")
    version = pytest.importorskip("cyclonedx.schema").SchemaVersion.V1_6
    assert validation.JsonStrictValidator(version).validate_str(json.dumps(bill)) is None


def test_a_part_of_the_record(wheel: zipfile.ZipFile) -> None:
    """Installers keep it, and check it."""
    folder = f"litecl-{litecl.__version__}.dist-info"
    assert f"\n{folder}/sboms/litecl.cdx.json,sha256=" in "\n" + wheel.read(f"{folder}/RECORD").decode()

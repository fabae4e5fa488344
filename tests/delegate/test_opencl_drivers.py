"""Whether pyopencl is loaded to look for GPUs."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from litecl.delegate import opencl_drivers
from litecl.delegate.opencl_drivers import may_have_gpus


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of drivers of a wheel of pyopencl that is not imported yet, on a system without drivers."""
    folder = tmp_path / "pyopencl/.libs"
    folder.mkdir(parents=True)
    (folder / "libOpenCL-5519dec5.so.1.0.0").touch()
    spec = ModuleSpec("pyopencl", None, origin=str(folder.parent / "__init__.py"))
    monkeypatch.setattr(opencl_drivers.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(opencl_drivers, "_VENDORS", tmp_path / "vendors")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delitem(sys.modules, "pyopencl", raising=False)
    for name in opencl_drivers._NAMED_BY:
        monkeypatch.delenv(name, raising=False)
    return folder


def test_pocl_of_pypi_has_no_gpus(wheel: Path) -> None:
    assert not may_have_gpus()
    (wheel / "pocl.icd").touch()
    assert not may_have_gpus()


def test_other_drivers_may_have_gpus(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vendors").mkdir()
    (tmp_path / "vendors/pocl.icd").touch()  # the system's, which may have been built for GPUs
    assert may_have_gpus()
    (tmp_path / "vendors/pocl.icd").rename(wheel / "nvidia.icd")
    assert may_have_gpus()
    (wheel / "nvidia.icd").unlink()
    assert not may_have_gpus()
    for name in opencl_drivers._NAMED_BY:
        with monkeypatch.context() as patch:
            patch.setenv(name, "/drivers")
            assert may_have_gpus()


def test_other_loaders_may_find_gpus(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wheel / "libOpenCL-5519dec5.so.1.0.0").unlink()
    assert may_have_gpus()
    (wheel / "libOpenCL-5519dec5.so.1.0.0").touch()
    for system in ("darwin", "win32"):
        monkeypatch.setattr(sys, "platform", system)
        assert may_have_gpus()


def test_a_first_model_loads_no_opencl_where_no_driver_has_gpus() -> None:
    program = (
        "import sys\n"
        "from litecl.delegate.opencl_drivers import may_have_gpus\n"
        "if may_have_gpus(): sys.exit(77)\n"
        "from litecl.delegate.native import compiler\n"
        "if compiler.found() is None: sys.exit(77)\n"
        "from support.fault_models import assert_right, prepared, small\n"
        "assert_right(interpreter := prepared(small()))\n"
        "assert interpreter.delegation_report().device == 'native'\n"
        "assert 'pyopencl' not in sys.modules\n"
    )
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], cwd=tests, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("a driver may have GPUs here, or there is no compiler")
    assert not done.returncode, done.stderr

"""The folder in which PoCL compiles: private to a process, never read again, and removed by its last user."""

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litecl.delegate.opencl import environment, folder
from litecl.delegate.opencl.devices.device import devices
from litecl.interpreter.file.writer import write_file
from support import compare, small_models

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="locks of files and forks of Linux"),
    pytest.mark.nightly,
]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()
_TESTS = Path(__file__).parents[1]
_RUN = """
    import os, sys
    import numpy as np
    from litecl.delegate import CLDelegate
    from litecl.interpreter import Interpreter
    from support import pocl_processor

    pocl_processor.watch()
    kept, ending = sys.argv[1:]
    delegate = CLDelegate("pocl", num_threads=1, strict=True, cache_dir=None if kept == "nothing kept" else kept)
    interpreter = Interpreter("model.tflite", delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.load("x.npy"))
    interpreter.invoke()
    np.save("y.npy", interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert interpreter.delegation_report().claimed == 4
    if ending == "killed":
        os._exit(0)
"""


def _python(script: str, *arguments: str, home: Path) -> str:
    """Run a script in a folder that is its home, too. It must come to its end."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("POCL_CACHE", "XDG"))}
    path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        cwd=home, env={**environment, "HOME": str(home), "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home folder of a killed process, with litecl's programs and PoCL's folder."""
    if devices()[0].platform.name != environment.POCL:
        pytest.skip("PoCL only")
    home = tmp_path_factory.mktemp("left")
    write_file(CHAIN, home / "model.tflite")
    np.save(home / "x.npy", X)
    _python(_RUN, "programs", "killed", home=home)
    names = {path.name for path in (home / ".cache/pocl").rglob("*") if path.is_file() and path.stat().st_size}
    assert "program.bc" in names
    assert any(name.endswith(".so") for name in names)
    return home


def _flipped(content: bytes) -> bytes:
    array = np.frombuffer(content, np.uint8).copy()
    if array.size:
        array[RNG.integers(array.size, size=20)] ^= 4
    return array.tobytes()


@pytest.mark.parametrize(
    ("cache", "kind"),
    [("programs", "program.bc"), ("programs", "*.so"), ("nothing kept", "*")],
    ids=lambda value: value,
)
@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[: len(c) // 2], _flipped], ids=["empty", "half", "some bits"]
)
def test_damage_is_never_read(
    damage: Callable[[bytes], bytes], kind: str, cache: str, left: Path, tmp_path: Path
) -> None:
    """PoCL would abort or crash. The next process computes the same, by litecl's programs or without them."""
    home = tmp_path / "home"
    shutil.copytree(left, home)
    (home / "y.npy").unlink()
    for path in filter(Path.is_file, (home / ".cache/pocl").rglob(kind)):
        path.write_bytes(damage(path.read_bytes()))
    _python(_RUN, cache, "as usual", home=home)
    wanted = small_models.run(small_models.reference(CHAIN), X)
    compare.assert_close(np.load(home / "y.npy"), wanted, compare.DEVICE["float32"])


_OWN = """
    import os, sys, time
    from pathlib import Path
    from litecl.delegate.opencl import environment, folder
    environment.set_environment()
    mine = os.environ["POCL_CACHE_DIR"]
    assert Path(mine).is_dir()
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"
"""


def test_where_it_lies(tmp_path: Path) -> None:
    """In the cache folder where there is a home with room, else in the temporary one; a user's own is left alone."""
    assert Path(_python(_OWN + "    print(mine)", home=tmp_path).strip()).parent == tmp_path / ".cache/pocl"
    full = _OWN.replace("environment.set_env", "environment._has_room = lambda where: False; environment.set_env")
    assert Path(_python(full + "    print(mine)", home=tmp_path).strip()).parent != tmp_path / ".cache/pocl"
    (tmp_path / ".cache").rename(tmp_path / "other")
    (tmp_path / ".cache").touch()
    mine = Path(_python(_OWN + "    print(mine)", home=tmp_path).strip())
    assert mine.name.startswith("litecl-pocl-")
    assert not mine.exists()
    user = """
        import os
        os.environ["POCL_CACHE_DIR"] = os.environ["PYOPENCL_NO_CACHE"] = "the user's"
        from litecl.delegate.opencl import environment
        environment.set_environment()
        print(os.environ["POCL_CACHE_DIR"], os.environ["PYOPENCL_NO_CACHE"])
    """
    assert _python(user, home=tmp_path).strip() == "the user's the user's"


def test_a_process_started_by_another_has_its_own(tmp_path: Path) -> None:
    script = (
        _OWN
        + """
    import subprocess
    other = "from litecl.delegate.opencl import environment; environment.set_environment(); import os; "
    other += "print(os.environ['POCL_CACHE_DIR'])"
    theirs = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(theirs).parent == Path(mine).parent and theirs != mine
    assert Path(mine).is_dir() and not Path(theirs).exists()
    """
    )
    _python(script, home=tmp_path)
    assert not [*(tmp_path / ".cache/pocl").iterdir()]


@pytest.mark.parametrize("longer", ["parent", "child"])
def test_the_last_of_forked_processes_removes_it(longer: str, tmp_path: Path) -> None:
    script = (
        _OWN
        + """
    end, go_on = os.pipe()
    child = os.fork()
    if (child == 0) == (sys.argv[1] == "child"):  # this one ends last
        os.close(go_on)
        os.read(end, 1)  # until the other one has ended
        assert Path(mine).is_dir()
        environment.set_environment()
        assert os.environ["POCL_CACHE_DIR"] == mine
        Path("seen").touch()
    """
    )
    _python(script, longer, home=tmp_path)
    assert (tmp_path / "seen").exists()
    assert not [*(tmp_path / ".cache/pocl").iterdir()]


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    _python(_OWN + "    os._exit(0)", home=tmp_path)
    parent = tmp_path / ".cache/pocl"
    (lost,) = parent.iterdir()
    made = [Path(folder.make(parent)) for _ in "12"]
    assert {*parent.iterdir()} == {lost, *made}  # it may have been made just now, and is not locked yet
    for each in (lost, *made):
        os.utime(each, (1e9, 1e9))
    last = Path(folder.make(parent))
    assert {*parent.iterdir()} == {*made, last}  # those of this process are in use

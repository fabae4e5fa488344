"""Packs: libraries of regions for machines without a compiler (``litecl compile --for``)."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate import CLDelegate
from litecl.delegate.native import compiler, features, kinds, pack, packed
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.unary import NEG
from support import compare, small_models
from support.build import Graph, model, randn
from support.command import data, failure
from support.small_models import prepared, reference, run

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
ELSEWHERE = pytest.mark.skipif(
    getattr(compiler.found(), "source", "") != compiler.OF_ZIGLANG, reason="no compiler for all machines"
)
RNG = np.random.default_rng(6)
X = RNG.standard_normal((2, 5)).astype(np.float32)
CHAIN, LSTM = small_models.chain(), small_models.lstm()
OTHER_MACHINE = "riscv64-linux" if kinds.here().name != "riscv64-linux" else "aarch64-linux"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two models and a pack of them for this kind of machine: for the oldest processor, and for this."""
    made = tmp_path_factory.mktemp("packs")
    for name, content in (("chain", CHAIN), ("lstm", LSTM)):
        write_file(content, made / f"{name}.tflite")
    models = made / "chain.tflite", made / "lstm.tflite"
    machines = "--for", kinds.here().name, "--for", "host"
    assert main([*map(str, ("compile", *models, *machines, "-o", made / "both.pack", "--threads", 2, "--json"))]) == 0
    return made


def with_pack(folder: Path, model_: Any = CHAIN, **options: Any) -> Interpreter:
    return prepared(model_, **{"programs": folder / "both.pack", "strict": True, **options})


def test_a_board_needs_no_compiler(folder: Path) -> None:
    """Nor anything else but numpy and flatbuffers: modules that litecl may use besides cannot be imported, no process
    can be started. The numbers are the interpreter's, states included.
    """
    x = RNG.standard_normal((3, 1, 3, 4)).astype(np.float32)
    np.save(folder / "x.npy", x)
    code = """
        import subprocess, sys
        for name in ("pyopencl", "ziglang", "platformdirs", "rich", "jinja2", "threadpoolctl"):
            sys.modules[name] = None  # importing it raises ImportError

        def start(*args, **options):
            raise AssertionError("a process is started")

        subprocess.Popen.__init__ = start
        import numpy as np
        from litecl.delegate import CLDelegate
        from litecl.interpreter import Interpreter

        for name, feeds in (("chain", []), ("lstm", np.load("x.npy"))):
            for threads in (1, 2):
                delegate = CLDelegate(programs="both.pack", strict=True, num_threads=threads)
                interpreter = Interpreter(f"{name}.tflite", delegates=[delegate])
                interpreter.allocate_tensors()
                results = []
                for x in feeds:
                    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
                    interpreter.invoke()
                    results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
                np.save(f"{name}{threads}.npy", results)
                report = interpreter.delegation_report()
                print(report.device, [str(partition.manner) for partition in report.partitions])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder, env=_without_path(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.splitlines()) == {f"native ['one kernel (from both.pack, for {_used(folder)})']"}
    wanted = reference(LSTM)
    results = [run(wanted, each) for each in x]
    for threads in (1, 2):
        compare.assert_close(np.load(folder / f"lstm{threads}.npy"), np.array(results), compare.DEVICE["float32"])


def _without_path() -> dict[str, str]:
    return {**os.environ, "PATH": ""}


def _used(folder: Path) -> str:
    """The machine of the pack that is to be chosen: the one with more features."""
    return max(pack.read(folder / "both.pack").machines, key=lambda each: len(each.features)).machine


@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_numbers_are_those_of_the_interpreter(folder: Path, threads: int | None) -> None:
    interpreter = with_pack(folder, num_threads=threads)
    compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    assert interpreter.delegation_report().claimed == 4


def test_a_model_that_is_not_in_it(folder: Path) -> None:
    g = Graph()
    other = model(g.build(g.op(NEG, [g.input((3,))], NoOptions())))
    with pytest.raises(KernelBuildError, match=r"no library for this region, of .*unary\.cl.*made for chain\.tflite"):
        with_pack(folder, other)
    x = randn(RNG, 3)
    fallen = with_pack(folder, other, strict=False)
    np.testing.assert_array_equal(run(fallen, x), -x)
    assert any("no library for this region" in said for said in fallen.delegation_report().warnings)
    with pytest.raises(KernelBuildError, match="without launch times"):
        with_pack(folder, profile=True)


def test_models_of_the_same_name(tmp_path: Path) -> None:
    """A pack has both, and names both where it has no library for a third one."""
    paths = [tmp_path / name / "model.tflite" for name in ("chain", "lstm")]
    for path, content in zip(paths, (CHAIN, LSTM), strict=True):
        path.parent.mkdir()
        write_file(content, path)
    arguments = "compile", *paths, "--for", "host", "-o", tmp_path / "both.pack", "--threads", 1, "--json"
    assert main([*map(str, arguments)]) == 0
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert pack.read(tmp_path / "both.pack").models == dict.fromkeys(digests, "model.tflite")
    compare.assert_close(run(with_pack(tmp_path), X), run(reference(CHAIN), X), compare.DEVICE["float32"])
    x = randn(RNG, 1, 3, 4)
    compare.assert_close(run(with_pack(tmp_path, LSTM), x), run(reference(LSTM), x), compare.DEVICE["float32"])
    told = r"made for model\.tflite \(({}|{})\), model\.tflite \(({}|{})\)".format(*2 * [d[:12] for d in digests])
    with pytest.raises(KernelBuildError, match=told):
        with_pack(tmp_path, profile=True)


def test_another_version_of_litecl(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pack.kernels_digest()[:12]
    monkeypatch.setattr(pack, "kernels_digest", lambda: "0" * 64)
    with pytest.raises(DelegateError, match=rf"with kernels {made}, and this one has 000000000000: make it"):
        with_pack(folder)
    fallen = with_pack(folder, strict=False)
    assert "make it again" in fallen.delegation_report().failures[0]
    compare.assert_close(run(fallen, X), run(reference(CHAIN), X), compare.DEVICE["float32"])


def test_damage_is_an_error(folder: Path, tmp_path: Path) -> None:
    """Any changed byte and any truncation is noticed, unless the bytes are never read."""
    content = (folder / "both.pack").read_bytes()
    whole = pack.read(folder / "both.pack")
    wanted = {name: whole.library(each, name) for each in whole.machines for name in each.libraries}
    damaged = tmp_path / "damaged.pack"
    noticed = 0
    for position in RNG.integers(0, len(content), 150):
        bad = bytearray(content)
        bad[position] ^= 1 << int(RNG.integers(8))
        damaged.write_bytes(bad if position % 5 else content[:position])
        try:
            found = pack.read(damaged)
            for each in found.machines:
                for name in each.libraries:
                    assert found.library(each, name) == wanted[name]
        except DelegateError as error:
            assert "damaged.pack" in str(error)
            noticed += 1
    assert noticed > 100


def test_a_library_that_was_exchanged(folder: Path, tmp_path: Path) -> None:
    """A file whose own checksums are right is not taken for the library that the manifest names."""
    changed = tmp_path / "changed.pack"
    with zipfile.ZipFile(folder / "both.pack") as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + (b"\0" if name.startswith("libraries/") else b""))
        new.comment = old.comment
    with pytest.raises(KernelBuildError, match=r"changed\.pack is damaged: library-\w+: expected \w+, got \w+"):
        prepared(CHAIN, programs=changed, strict=True)
    with zipfile.ZipFile(changed, "w") as new:
        new.writestr("manifest.json", json.dumps({"format": 1}))
    with pytest.raises(DelegateError, match="or is damaged: expected a manifest"):
        prepared(CHAIN, programs=changed, strict=True)


_WRONG: dict[str, tuple[Any, str]] = {
    "no thread": (lambda d: d.update(threads=[0]), r"threads\[0\]: expected a number of 1 to 4096, got 0"),
    "fewer threads than none": (lambda d: d.update(threads=[1, -2]), r"threads\[1\]: expected a number of 1"),
    "very many threads": (lambda d: d.update(threads=[1, 10**9]), r"threads\[1\]: expected a number of 1"),
    "threads in halves": (lambda d: d.update(threads=[1.5]), r"threads\[0\]: expected an integer"),
    "threads as a text": (lambda d: d.update(threads="1"), "threads: expected a list"),
    "true threads": (lambda d: d.update(threads=[True]), r"threads\[0\]: expected an integer"),
    "no numbers of threads": (lambda d: d.update(threads=[]), "threads: expected a length of at least 1, got 0"),
    "too many threads for here": (lambda d: d.update(threads=[4096]), r"made for threads \[4096\]"),
    "another mode": (lambda d: d.update(dynamic_range="fast"), "dynamic_range: expected one of"),
    "models in a list": (lambda d: d.update(models=["chain.tflite"]), "models: expected a mapping"),
    "a model's name": (lambda d: d.update(models={"1": 2}), r"models\['1'\]: expected a text"),
    "another format": (lambda d: d.update(format=3), "expected a pack of format 2, got 3"),
    "a format of text": (lambda d: d.update(format="2"), "format: expected 2"),
    "no kernels": (lambda d: d.pop("kernels"), "expected the key 'kernels'"),
    "kernels as a number": (lambda d: d.update(kernels=7), "kernels: expected a text"),
    "an unknown key": (lambda d: d.update(code="x"), r"expected only \[.*got \['code'\]"),
    "no machines": (lambda d: d.update(machines=[]), "machines: expected a length of at least 1"),
    "a machine as a text": (lambda d: d.update(machines=["x"]), r"machines\[0\]: expected a mapping"),
    "an unknown machine": (lambda d: d["machines"][0].update(machine="pdp-11"), r"machines\[0\].machine: expected one"),
    "a machine's number": (lambda d: d["machines"][0].update(machine=3), r"machines\[0\].machine: expected a text"),
    "an option": (lambda d: d["machines"][0].update(options=[1]), r"machines\[0\].options\[0\]: expected a text"),
    "options as a text": (lambda d: d["machines"][0].update(options="-O2"), r"machines\[0\].options: expected a list"),
    "macros": (lambda d: d["machines"][0].update(macros={"__AVX__": 1}), r"macros\['__AVX__'\]: expected a text"),
    "an unknown feature": (
        lambda d: d["machines"][0].update(features=["x"]),
        r"machines\[0\].features: expected those",
    ),
    "a feature that is not asked for": (
        lambda d: d["machines"][0].update(macros={features.known(kinds.here().architecture)[0]: ""}, features=[]),
        r"machines\[0\].features: expected those among its macros",
    ),
    "a library's digest": (
        lambda d: d["machines"][0]["libraries"].update(x="../y"),
        r"machines\[0\].libraries\['x'\]: expected a SHA-256",
    ),
    "a list": (lambda d: [d], "expected a mapping"),
}


@pytest.mark.parametrize("wrong", _WRONG)
def test_a_manifest_whose_values_do_not_fit(folder: Path, wrong: str, tmp_path: Path) -> None:
    """Its checksum is right: nothing of such a pack is used."""
    change, match = _WRONG[wrong]
    with zipfile.ZipFile(folder / "both.pack") as old, zipfile.ZipFile(tmp_path / "changed.pack", "w") as new:
        data = json.loads(old.read("manifest.json"))
        changed = change(data)
        text = json.dumps(changed if isinstance(changed, list) else data).encode()
        new.writestr("manifest.json", text)
        new.comment = hashlib.sha256(text).hexdigest().encode()
    with pytest.raises(DelegateError, match=match) as caught:
        prepared(CHAIN, programs=tmp_path / "changed.pack", strict=True)
    assert "changed.pack" in str(caught.value)


def test_files_that_are_no_packs(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DelegateError, match="No such file"):
        prepared(CHAIN, programs=tmp_path / "none.pack", strict=True)
    with pytest.raises(DelegateError, match="is not a pack of programs"):
        prepared(CHAIN, programs=folder / "chain.tflite", strict=True)
    content = bytearray((folder / "both.pack").read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 9] |= 8  # names are UTF-8
    content[entry + 46] = 0xFF
    (tmp_path / "name.pack").write_bytes(content)
    with pytest.raises(DelegateError, match="is not a pack of programs"):
        prepared(CHAIN, programs=tmp_path / "name.pack", strict=True)
    with pytest.raises(DelegateError, match="expected device='native', got 'basic'"):
        prepared(CHAIN, device="basic", programs=folder / "both.pack", strict=True)
    from_strings = CLDelegate.from_strings({"programs": str(folder / "both.pack"), "device": "native"})
    assert from_strings.programs == str(folder / "both.pack")


@ELSEWHERE
def test_another_machine(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.pack"
    assert main(["compile", str(folder / "chain.tflite"), "--for", OTHER_MACHINE, "-o", str(other), "--json"]) == 0
    with pytest.raises(DelegateError, match=rf"is for {OTHER_MACHINE}:[\w.]+, and this machine is {kinds.here().name}"):
        prepared(CHAIN, programs=other, strict=True)
    monkeypatch.setattr(features, "missing", lambda architecture, features: [*features, "__ARM_FEATURE_DOTPROD"])
    with pytest.raises(DelegateError, match=r"does not fit this machine's processor: .*it lacks .*DOTPROD"):
        with_pack(folder)


def test_the_processor_takes_what_uses_most_of_it(folder: Path) -> None:
    found, kind = pack.read(folder / "both.pack"), kinds.here()
    base = f"{kind.name}:{kind.base}"
    newest = _used(folder)
    assert packed._fitting(found, kind, lambda architecture, features: []).machine == newest
    if newest != base:  # this processor has more than the oldest one
        old = next(each for each in found.machines if each.machine == base)
        lacking = packed._fitting(found, kind, lambda architecture, features: list(set(features) - set(old.features)))
        assert lacking.machine == base


@ELSEWHERE
def test_what_compile_refuses(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = "compile", folder / "chain.tflite"
    assert "needs both --for MACHINE and -o PACK" in failure(capsys, *given, "--for", "host")
    assert "needs both" in failure(capsys, *given, "-o", tmp_path / "a.pack")
    told = failure(capsys, *given, "--for", "aarch64-linux:cortex-a99", "-o", tmp_path / "a.pack")
    assert "aarch64-linux:cortex-a99: clang knows no such processor; did you mean one of 'cortex-a" in told
    assert "clang version" not in told
    told = failure(capsys, *given, "--for", "riscv64-linux:rv64gc_zba", "-o", tmp_path / "a.pack")
    assert "a board cannot report its support of __riscv_zba" in told
    assert not [*tmp_path.iterdir()]
    with pytest.raises(SystemExit):
        main([*map(str, given), "--for", "amiga", "-o", "a.pack"])
    assert "there is no machine 'amiga'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["compile", "--for", "help"])
    assert ended.value.code == 0
    assert "armv7-linux" in capsys.readouterr().out


def test_a_pack_made_again_is_the_same_file(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pack"
    models = str(folder / "chain.tflite"), str(folder / "lstm.tflite")
    machines = "--for", kinds.here().name, "--for", "host"
    assert main(["compile", *models, *machines, "-o", str(again), "--threads", "2", "--json"]) == 0
    assert again.read_bytes() == (folder / "both.pack").read_bytes()


@ELSEWHERE
def test_the_example_of_the_document(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs/native.md").read_text()
    (command,) = re.findall(r"^    litecl (compile .*)$", text, re.MULTILINE)
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "model.tflite").write_bytes((folder / "chain.tflite").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0
    assert "aarch64-linux:cortex-a76" in capsys.readouterr().out
    exec(compile(example, "docs/native.md", "exec"), {})
    assert capsys.readouterr().out == f"one kernel (from model.pack, for {kinds.machine('host').name})\n"


def test_the_command_takes_a_pack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = data(capsys, "run", folder / "chain.tflite", "--programs", folder / "both.pack", "--require-device")
    (region,) = ran["delegation"]["partitions"]
    assert region["manner"]["reason"] == f"from both.pack, for {_used(folder)}"
    told = failure(capsys, "run", folder / "chain.tflite", "--programs", folder / "none.pack", "--require-device")
    assert "none.pack: No such file" in told


def test_a_pack_in_the_background(folder: Path) -> None:
    """The CPU runs the model until the pack's libraries are there."""
    interpreter = with_pack(folder, warm_up="background")
    for _ in range(500):
        compare.assert_close(run(interpreter, X), run(reference(CHAIN), X), compare.DEVICE["float32"])
        if interpreter.delegation_report().claimed:
            break
        time.sleep(0.01)
    assert interpreter.delegation_report().claimed == 4

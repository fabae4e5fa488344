"""Tests a compiler's target: emulators and masked processors may report instructions that they don't run.

A small program with one instruction of each set runs as a child process. If it dies of an illegal instruction, the next
lower level of processors is tried. The result is cached on disk per compiler and processor, with the compiler's facts.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.backend.cpu_features import seen_by_numpy
from litecl.delegate.backend.sources import source_of
from litecl.delegate.native import features
from litecl.delegate.native.clang import Compiler, Facts, Unit, folder
from litecl.delegate.progress import info, warn
from litecl.interpreter.errors import KernelBuildError

_PROGRAM = "probe.c"
_LEVELS = {  # lower targets, by the architecture's macro
    "__x86_64__": tuple((f"-march={name}",) for name in ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")),
    "__aarch64__": (("-mcpu=generic",),),
}
_LONGEST_S = 10.0


def checked(compiler: Compiler, directory: Path | None) -> Compiler:
    """Return a compiler whose target this processor can run. directory: the cache of results, or None.

    Raises nothing: a broken compiler is returned unchanged, and fails when used.
    """
    path = _path(compiler, directory)
    if path is not None and (kept := restored(compiler, disk.read_sealed(path))) is not None:
        return kept
    try:
        suitable = _tried(compiler)
    except KernelBuildError as error:
        info("the compiler %s: %s", compiler.source, error)
        return compiler
    if path is not None:
        with suppress(OSError):
            keep(suitable, path)
    return suitable


def keep(compiler: Compiler, path: Path) -> None:
    """Write a compiler's target and the facts about it. Raises OSError."""
    content = {"source": compiler.source, "target": compiler.target, "facts": asdict(compiler.facts)}
    disk.write_sealed(path, json.dumps(content).encode())


def restored(compiler: Compiler, kept: bytes | None) -> Compiler | None:
    """Return the compiler that was kept; None if there is none or another version of litecl wrote it."""
    if kept is None:
        return None
    with suppress(KeyError, TypeError, ValueError):
        data = json.loads(kept)
        return replace(compiler, source=data["source"], target=tuple(data["target"]), known=Facts(**data["facts"]))
    return None


@cache
def _tried(compiler: Compiler) -> Compiler:
    """Return a compiler for its own target or the highest level that runs. Raises KernelBuildError."""
    if not (lacks := _lacks(compiler)):
        return compiler
    promised = compiler.processor
    for target in next((levels for name, levels in _LEVELS.items() if name in compiler.macros), ()):
        lower = replace(compiler, target=target, known=None)
        if not _lacks(lower):
            break
    else:
        return compiler
    warn(
        f"the processor does not run all instructions that {promised} promises ({lacks}): "
        f"kernels are compiled for {lower.processor}"
    )
    return replace(
        lower, source=f"{compiler.source}, for {lower.processor} as {promised} does not run", known=lower.facts
    )


def _lacks(compiler: Compiler) -> str:
    """Return the features of a compiler's target that the processor lacks; empty if none are known to be missing."""
    if sys.platform != "linux":
        return ""
    if "__x86_64__" in compiler.macros and (names := features.missing("x86_64", _x86_of(compiler))):
        return ", ".join(names)  # checked in this process: a child may run outside its emulator
    return "" if _runs(compiler) else "an illegal instruction"


def _x86_of(compiler: Compiler) -> Sequence[str]:
    return [name for name in features.known("x86_64") if name in compiler.macros]


def _runs(compiler: Compiler) -> bool:
    """Return whether a program with one instruction of each set runs; True if it can't be tried."""
    if not compiler.macros.keys() & _LEVELS.keys():
        return True
    import signal
    import subprocess

    content = compiler.program(compiler.compile([Unit(_PROGRAM, source_of(_PROGRAM))]))
    with folder() as directory:
        path = directory / "probe"
        path.write_bytes(content)
        path.chmod(0o700)
        try:
            ran = subprocess.run([str(path)], cwd=directory, check=False, timeout=_LONGEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            info("instructions could not be probed: %s", error)
            return True
    return ran.returncode not in (-signal.SIGILL, 128 + signal.SIGILL)


def _path(compiler: Compiler, directory: Path | None) -> Path | None:
    """Return the cache file for a compiler, a processor and the probe's source; None if the processor can't be
    identified.
    """
    if directory is None:
        return None
    try:
        path = Path(compiler.command[0]).resolve()
        status, processor = path.stat(), _first_processor()
    except OSError:
        return None
    seen = [name for name, there in seen_by_numpy().items() if there]
    identity = (str(path), str(status.st_mtime_ns), str(status.st_size), *compiler.command[1:], *compiler.target)
    return directory / f"{disk.key('compiler', identity, (processor, *seen, source_of(_PROGRAM)))}.json"


def _first_processor() -> str:
    """Return the first processor's lines in /proc/cpuinfo, without its speed. Raises OSError outside Linux."""
    with Path("/proc/cpuinfo").open(errors="replace", encoding="utf-8") as file:
        lines = file.read(1 << 13).partition("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if not line.lower().startswith(("cpu mhz", "bogomips", "processor")))

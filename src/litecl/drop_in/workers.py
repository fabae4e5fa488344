"""Installs litecl in the worker processes of a program that runs under ``litecl.run_as``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import spawn
from typing import Any

from litecl.drop_in import install


@dataclass(frozen=True)
class Installation:
    """Packages that litecl stands in for, with its options. Unpickling one installs it."""

    packages: Sequence[str]
    options: dict[str, Any]

    def __reduce__(self) -> tuple[Callable[..., "Installation"], tuple[Sequence[str], dict[str, Any]]]:
        return installed, (self.packages, self.options)


def installed(packages: Sequence[str], options: dict[str, Any]) -> Installation:
    """Install litecl as these packages in this process."""
    for package in packages:
        install(package, options)
    return Installation(packages, options)


def reach_workers(packages: Sequence[str], options: dict[str, Any]) -> None:
    """Make spawned multiprocessing workers install litecl before they import the program.

    Forked ones have it already. A worker unpickles its preparation data first, so this adds an ``Installation`` to it.
    """
    prepared = spawn.get_preparation_data

    def with_installation(name: str) -> dict[str, Any]:
        return {**prepared(name), "litecl": Installation(packages, options)}

    spawn.get_preparation_data = with_installation

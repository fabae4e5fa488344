"""Worker processes of a program that runs under ``litecl.run_as``: they get litecl as their parent has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import spawn
from typing import Any

from litecl.drop_in import install


@dataclass(frozen=True)
class Installation:
    """Packages that litecl stands in for, with its options. To load a pickled one is to install it."""

    packages: Sequence[str]
    options: dict[str, Any]

    def __reduce__(self) -> tuple[Callable[..., "Installation"], tuple[Sequence[str], dict[str, Any]]]:
        return installed, (self.packages, self.options)


def installed(packages: Sequence[str], options: dict[str, Any]) -> Installation:
    """Make litecl stand in for packages in this process."""
    for package in packages:
        install(package, options)
    return Installation(packages, options)


def reach_workers(packages: Sequence[str], options: dict[str, Any]) -> None:
    """Have workers that multiprocessing starts afresh install litecl before they import the program.

    A fork has it already. The data that prepare a worker are the first that it loads, so an ``Installation`` is put
    among them.
    """
    prepared = spawn.get_preparation_data

    def with_installation(name: str) -> dict[str, Any]:
        return {**prepared(name), "litecl": Installation(packages, options)}

    spawn.get_preparation_data = with_installation

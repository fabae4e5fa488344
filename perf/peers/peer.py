"""What the tool knows of a runtime that litecl is measured against."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import MissingExtra
from litecl.perf.feeds import Runtime


@dataclass(frozen=True)
class Peer:
    """A runtime. packages: pip's names of those it needs, by module, its own first. module: imports it.

    load: opens a file's content for a number of threads. convert: what takes long of that, and is done once for a file.
    """

    packages: Mapping[str, str]
    module: Callable[[], Any]
    load: Callable[[bytes, int], Runtime]
    convert: Callable[[bytes], object] | None = None

    @property
    def is_installed(self) -> bool:
        """Whether all its packages are."""
        return all(find_spec(module) for module in self.packages)

    @property
    def version(self) -> str:
        """The runtime's version; empty if unknown."""
        from importlib.metadata import PackageNotFoundError, version  # half as slow to import as numpy

        try:
            return version(next(iter(self.packages.values())))
        except PackageNotFoundError:  # another package brings the module
            return ""

    def require(self, name: str) -> None:
        """Raise MissingExtra if a package isn't installed."""
        if not self.is_installed:
            needed = " ".join(self.packages.values())
            raise MissingExtra(f"comparing with {name} needs other packages: pip install {needed}")

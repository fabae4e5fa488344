"""An empty stand-in for a package that isn't installed, visible to import machinery and ``importlib.metadata``."""

import re
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from types import ModuleType


class StandIn(MetaPathFinder, Loader):
    """Finds and loads a package and its distribution. version: the package version whose interface litecl provides."""

    def __init__(self, package: str, version: str) -> None:
        self.module = ModuleType(package, "Where litecl stands in for a package that is not installed.")
        self._package, self._version = package, version
        spec = ModuleSpec(package, self, origin=__file__, is_package=True)
        self.module.__spec__, self.module.__loader__, self.module.__file__ = spec, self, __file__
        self.module.__package__ = package
        self.module.__path__ = []
        self.module.__dict__["__version__"] = version

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the package's spec. It is already loaded."""
        return self.module.__spec__ if fullname == self._package else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, even on reload."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Return the package's distribution, for ``importlib.metadata``."""
        name = None if context is None else context.name
        if name is not None and _normal(name) != _normal(self._package):
            return []
        return [_Distribution(self._package, self._version)]


class _Distribution(Distribution):
    """Metadata for an absent package: its name and version."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: litecl stands in for it\n"

    def read_text(self, filename: str) -> str | None:
        """Return METADATA, the only file."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Raise FileNotFoundError: there are no files."""
        raise FileNotFoundError(path)


def _normal(name: str) -> str:
    """Normalize a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()

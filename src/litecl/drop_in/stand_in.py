"""An empty package for one that is not installed, which answers all who look before they import."""

import re
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from types import ModuleType


class StandIn(MetaPathFinder, Loader):
    """Finds and loads a package, and its distribution. version: that of the package whose interface litecl has."""

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
        """Return how the package is loaded, which it is already."""
        return self.module.__spec__ if fullname == self._package else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the package as it is, also where it is loaded again."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Return what ``importlib.metadata`` tells of the package."""
        name = None if context is None else context.name
        if name is not None and _normal(name) != _normal(self._package):
            return []
        return [_Distribution(self._package, self._version)]


class _Distribution(Distribution):
    """The metadata of a package that is not there: its name and version."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: litecl stands in for it\n"

    def read_text(self, filename: str) -> str | None:
        """Return the metadata, the only file."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Raise FileNotFoundError: there are no files."""
        raise FileNotFoundError(path)


def _normal(name: str) -> str:
    """Return a name of a distribution as all its spellings are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()

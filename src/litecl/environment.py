"""LiteRT's environment, which models may share. litecl shares devices and programs even without it."""

from dataclasses import dataclass
from typing import Any, Self

from litecl.interpreter.errors import ModelError


@dataclass(frozen=True)
class EnvironmentOptions:
    """LiteRT's library paths, which litecl doesn't use, and litecl's own option.

    cl_context: a pyopencl Context of one device. Models run in it, so they read and write your buffers
    (``TensorBuffer.from_cl_mem``) without a copy.
    """

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""
    cl_context: Any = None


class Environment:
    """Options that the models of a process share."""

    def __init__(self, options: EnvironmentOptions | None = None) -> None:
        self._options = options or EnvironmentOptions()

    @classmethod
    def create(
        cls,
        *,
        options: EnvironmentOptions | str | None = None,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
    ) -> Self:
        """Return an environment. Raises ModelError if options are given twice."""
        if isinstance(options, str):
            if runtime_path is not None:
                raise ModelError("runtime_path was provided twice.")
            options, runtime_path = None, options
        if options is not None and (runtime_path is not None or compiler_plugin_path or dispatch_library_path):
            raise ModelError("Pass either options or environment path shortcuts.")
        return cls(options or EnvironmentOptions(runtime_path, compiler_plugin_path, dispatch_library_path))

    @property
    def options(self) -> EnvironmentOptions:
        """The options given on creation."""
        return self._options

    def close(self) -> None:
        """Do nothing: models hold their own resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

"""LiteRT's environment, which several models may share. litecl's devices and programs are shared in any case."""

from dataclasses import dataclass
from typing import Any, Self

from litecl.interpreter.errors import ModelError


@dataclass(frozen=True)
class EnvironmentOptions:
    """Where LiteRT would find libraries, of which litecl has none.

    cl_context: litecl's own: a pyopencl Context of one device in which models run, so that they read and write your
    buffers (``TensorBuffer.from_cl_mem``) without a copy.
    """

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""
    cl_context: Any = None


class Environment:
    """Options that models of one process share."""

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
        """Return an environment. Raises ModelError where options are given twice."""
        if isinstance(options, str):
            if runtime_path is not None:
                raise ModelError("runtime_path was provided twice.")
            options, runtime_path = None, options
        if options is not None and (runtime_path is not None or compiler_plugin_path or dispatch_library_path):
            raise ModelError("Pass either options or environment path shortcuts.")
        return cls(options or EnvironmentOptions(runtime_path, compiler_plugin_path, dispatch_library_path))

    @property
    def options(self) -> EnvironmentOptions:
        """The options that it was made with."""
        return self._options

    def close(self) -> None:
        """Do nothing: models keep what they need."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

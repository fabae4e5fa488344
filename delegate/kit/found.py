"""The operators of a package, found in its modules: nothing lists them."""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from litecl.delegate.cl_op import ClOp


def device_ops(package: str, path: Iterable[str]) -> tuple[ClOp, ...]:
    """Return the ``CL_OPS`` of the modules of a package, by module; those of packages within it stay apart."""
    names = [module.name for module in iter_modules(path, f"{package}.") if not module.ispkg]
    return tuple(cl_op for name in names for cl_op in getattr(import_module(name), "CL_OPS", ()))

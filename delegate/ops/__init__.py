"""The device operators, one file per operator or family, and the table of them all: every module's ``CL_OPS``.

A module is imported when one of its operators is needed: their names stand in its source.
"""

import re
from collections.abc import Iterator, Mapping

from litecl.delegate.cl_op import ClOp, DeviceOp, Variants
from litecl.delegate.ops import hybrid, quantized
from litecl.delegate.quantized import hybrid as hybrid_weights
from litecl.delegate.quantized import integers
from litecl.interpreter import ops
from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import Op


def _names(source: str) -> frozenset[str]:
    """Return the names of operators in a source, and some other words."""
    return ops.MODULES.names.intersection(re.findall(r"\w+", source))


GENERAL = Modules(__name__, __path__, _names)
# Modules with kernels of their own for nodes to which this applies.
SPECIAL = (
    (integers.applies, Modules(quantized.__name__, quantized.__path__, _names)),
    (hybrid_weights.applies, Modules(hybrid.__name__, hybrid.__path__, _names)),
)


class _DeviceOps(Mapping[Op, DeviceOp]):
    """Device operators by their records: to get one imports its modules, to list them imports all."""

    def __init__(self) -> None:
        self._found: dict[Op, DeviceOp] = {}

    def __getitem__(self, op: Op) -> DeviceOp:
        """Return an operator, as variants where quantized tensors or integer weights have their own kernels."""
        found = self._found.get(op)
        return self._found.setdefault(op, self._find(op)) if found is None else found  # one for all threads

    def _find(self, op: Op) -> DeviceOp:
        general = _defined(GENERAL, op)
        special = [(applies, cl_op) for applies, modules in SPECIAL for cl_op in _defined(modules, op)]
        if general and special:
            return Variants(op, tuple(special), general[0])
        only = [*general, *(cl_op for _, cl_op in special)]
        if not only:
            raise KeyError(op)
        return only[0]

    def __iter__(self) -> Iterator[Op]:
        """Yield the records, by module."""
        everything = [module for modules in (GENERAL, *(modules for _, modules in SPECIAL)) for module in modules]
        return iter(dict.fromkeys(cl_op.op for module in everything for cl_op in getattr(module, "CL_OPS", ())))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _defined(modules: Modules, op: Op) -> list[ClOp]:
    """Return the device operators that modules have for an operator."""
    return [cl_op for module in modules.naming(op.name) for cl_op in getattr(module, "CL_OPS", ()) if cl_op.op is op]


CL_OPS: Mapping[Op, DeviceOp] = _DeviceOps()

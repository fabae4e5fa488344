"""The operators, one file per operator or family, and the tables of them all.

Every record that a module of this package defines, by itself or in a tuple, is an operator: nothing else lists them.
``BUILTINS`` maps the schema's BuiltinOperator names to records, ``CUSTOMS`` maps custom codes. A module is imported
when one of its operators is needed: their names stand there in quotes.
"""

import re
from collections.abc import Iterator, Mapping
from types import ModuleType

from litecl.interpreter.kit.modules import Modules
from litecl.interpreter.op import ControlOp, Op

_QUOTED = re.compile(r'"([\w.]+)"')

MODULES = Modules(__name__, __path__, _QUOTED.findall)


def _records(module: ModuleType) -> Iterator[Op | ControlOp]:
    """Yield the records of a module; one imported into another module comes again."""
    for value in vars(module).values():
        for record in value if isinstance(value, tuple) else (value,):
            if isinstance(record, Op | ControlOp):
                yield record


class _Operators(Mapping[str, Op | ControlOp]):
    """Operators by name: to get one imports its module, to list them imports all."""

    def __init__(self, custom: bool) -> None:
        self._custom = custom

    def __getitem__(self, name: str) -> Op | ControlOp:
        """Return an operator: of several forms, the one that selects among them."""
        found = (op for module in MODULES.naming(name) for op in _records(module))
        forms = [op for op in found if op.name == name and op.custom == self._custom]
        if not forms:
            raise KeyError(name)
        return next((op for op in forms if isinstance(op, Op) and op.select is not None), forms[0])

    def __iter__(self) -> Iterator[str]:
        """Yield the names, by module."""
        found = (op for module in MODULES for op in _records(module))
        return iter(dict.fromkeys(op.name for op in found if op.custom == self._custom))

    def __len__(self) -> int:
        return sum(1 for _ in self)


BUILTINS: Mapping[str, Op | ControlOp] = _Operators(custom=False)
CUSTOMS: Mapping[str, Op | ControlOp] = _Operators(custom=True)


def every_op() -> tuple[Op | ControlOp, ...]:
    """Return all operators."""
    return (*BUILTINS.values(), *CUSTOMS.values())

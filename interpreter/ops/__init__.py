"""The operators, one file per operator or family, and the table of them all.

Every record that a module of this package defines, by itself or in a tuple, is an operator: nothing else lists them.
``BUILTINS`` maps the schema's BuiltinOperator names to records, ``CUSTOMS`` maps custom codes.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from litecl.interpreter.op import ControlOp, Op


def _records() -> Iterator[Op | ControlOp]:
    """Yield the records of all modules, by module; one imported into another module comes again."""
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            for record in value if isinstance(value, tuple) else (value,):
                if isinstance(record, Op | ControlOp):
                    yield record


def _table() -> dict[str, Op | ControlOp]:
    """Return the records by name: of several forms of one operator, the one that selects among them."""
    table: dict[str, Op | ControlOp] = {}
    for record in _records():
        known = table.setdefault(record.name, record)
        if known is not record and isinstance(record, Op) and record.select is not None:
            table[record.name] = record
    return table


OPS: tuple[Op | ControlOp, ...] = tuple(_table().values())
BUILTINS: dict[str, Op | ControlOp] = {op.name: op for op in OPS if not op.custom}
CUSTOMS: dict[str, Op | ControlOp] = {op.name: op for op in OPS if op.custom}

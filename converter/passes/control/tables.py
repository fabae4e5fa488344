"""Fills the lookup tables that a graph itself initializes, as those of TensorFlow 1 may."""

import zlib
from dataclasses import replace

from litecl.converter.graph import Function, Node
from litecl.converter.records import Table

_FILLS = ("InitializeTableV2", "LookupTableImportV2")


def fill_tables(function: Function) -> None:
    """Drop initializers of static tables with constants; a table that nothing has filled yet has that content.

    TensorFlow fills such a table once: another content, which it refuses when the model runs, is left to be refused.
    """
    for node in [node for node in function.nodes if node.op in _FILLS]:
        table, handle = _table(node), node.input(0)
        if table is None:
            continue
        if handle.variable is None:
            handle.variable = table
        if isinstance(handle.variable, Table) and _content(handle.variable) == _content(table):
            function.replace_node(node, ())
    function.tidy()


def _table(node: Node) -> Table | None:
    """Return the table that an initializer makes; None where its content or handle is not known, or a key repeats."""
    keys, values, maker = node.input(1).data, node.input(2).data, node.input(0).producer
    if maker is None or maker.op != "HashTableV2" or keys is None or values is None:
        return None
    table = Table(maker.name, keys, "", values=values)
    content = _content(table)
    if keys.shape != values.shape or len(content) != keys.size:
        return None
    return replace(table, key=f"table/{maker.name}/{zlib.crc32(repr(content).encode())}")


def _content(table: Table) -> dict[object, object]:
    return dict(zip(table.data.reshape(-1).tolist(), table.values.reshape(-1).tolist(), strict=False))

"""Fills lookup tables that the graph itself initializes, as in TensorFlow 1."""

import zlib
from dataclasses import replace

from litecl.converter.graph import Function, Node
from litecl.converter.records import Table

_FILLS = ("InitializeTableV2", "LookupTableImportV2")


def fill_tables(function: Function) -> None:
    """Drop initializers of static tables with constant content; a table not filled before gets that content.

    TensorFlow fills such a table once. An initializer with other content, which fails in TensorFlow, is refused later.
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
    """Return the table that an initializer makes; None if content or handle is unknown, or a key repeats."""
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

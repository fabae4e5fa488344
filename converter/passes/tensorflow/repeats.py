"""Recognises nearest-neighbour upsampling, which Keras writes as a repetition along each axis of an image."""

from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant


@dataclass(frozen=True, eq=False)
class _Repeat:
    """Repeats every element of ``x`` along an axis ``times`` times in a row."""

    x: Value
    axis: int
    times: int


def fuse_repeats(function: Function) -> None:
    """Turn repetitions along both axes of an image of known size into one ResizeNearestNeighbor."""
    for node in list(function.nodes):
        second = _repeat(node)
        first = None if second is None or second.x.producer is None else _repeat(second.x.producer)
        if first is not None and second is not None and {first.axis, second.axis} == {1, 2}:
            _fuse(function, node, first.x)
    function.tidy()


def _repeat(node: Node) -> _Repeat | None:
    """Match reshape(tile(expand_dims(x, axis + 1), times at axis + 1)), the trace of ``tf.repeat``."""
    tile = node.input(0).producer if node.op == "Reshape" else None
    expand = tile.input(0).producer if tile is not None and tile.op == "Tile" else None
    if tile is None or expand is None or expand.op != "ExpandDims":
        return None
    x, multiples, new_axis = expand.input(0), tile.input(1).data, expand.input(1).data
    if x.shape is None or multiples is None or new_axis is None:
        return None
    new = int(new_axis) % (len(x.shape) + 1)
    times = int(multiples[new])
    if new == 0 or multiples.sum() != times + len(x.shape):
        return None
    axis = new - 1
    size = x.shape[axis]
    repeated = (*x.shape[:axis], None if size is None else size * times, *x.shape[axis + 1 :])
    return _Repeat(x, axis, times) if node.output.shape == repeated else None


def _fuse(function: Function, node: Node, x: Value) -> None:
    old = node.output
    if x.rank != 4 or old.shape is None or old.shape[1] is None or old.shape[2] is None:
        return
    result = Value(old.type, old.shape, old.name)
    size = constant(np.array(old.shape[1:3], np.int32), f"{node.name}/size")
    attrs = {"align_corners": False, "half_pixel_centers": False}
    function.add(Node("ResizeNearestNeighbor", [x, size], [result], attrs, node.name))
    function.replace_node(node, [result])

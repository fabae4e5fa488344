"""What a user may ask of the delegate."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Literal, get_args

from litecl.delegate.cl_op import ClOp, DeviceOp
from litecl.delegate.ops import CL_OPS
from litecl.delegate.tuning import Tuning
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.op import Op

Precision = Literal["fp32", "fp16"]


@dataclass(frozen=True)
class CLOptions:
    """The keywords of ``CLDelegate``, checked. See there for what they mean.

    queue_loops: queue the iterations of loops, and launches by themselves, also where one kernel could run them all.
    """

    device: Any = None
    num_threads: int | None = None
    precision: Precision = "fp32"
    max_delegated_partitions: int | None = None
    min_nodes_per_partition: int = 1
    allow_ops: frozenset[str] | None = None
    deny_ops: frozenset[str] = frozenset()
    deny_nodes: frozenset[tuple[int, int]] = frozenset()
    cache_dir: str | PathLike[str] | None = "auto"
    tuning: Tuning | None = None
    profile: bool = False
    strict: bool = False
    max_loop_iterations: int | None = None
    queue_loops: bool = False
    custom_ops: tuple[ClOp, ...] = ()

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise DelegateError(f"precision: expected 'fp32' or 'fp16', got {self.precision!r}")
        for name in ("num_threads", "max_delegated_partitions", "min_nodes_per_partition", "max_loop_iterations"):
            value = getattr(self, name)
            if value is not None and value < (0 if name.startswith("max_") else 1):
                raise DelegateError(f"{name}: expected a positive number, got {value}")

    @cached_property
    def cl_ops(self) -> Mapping[Op, DeviceOp]:
        """The device operators: litecl's, and those of the user."""
        return {**CL_OPS, **{cl_op.op: cl_op for cl_op in self.custom_ops}}


def node_set(nodes: Collection[int | tuple[int, int]]) -> frozenset[tuple[int, int]]:
    """``deny_nodes`` as (subgraph, node) pairs; a bare number is a node of subgraph 0."""
    return frozenset((0, node) if isinstance(node, int) else node for node in nodes)

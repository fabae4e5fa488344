"""What launches need of a group of work-items."""

from math import prod

from litecl.delegate.cl_op import Launch, Local


def waits(launch: Launch) -> bool:
    """Return whether work-items wait for others of their group."""
    return not launch.apart and prod(launch.local_size) > 1


def local_bytes(launch: Launch) -> int:
    """Return the local memory of a group that is an argument."""
    return sum(arg.size_bytes for arg in launch.args if isinstance(arg, Local))

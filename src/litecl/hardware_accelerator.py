"""LiteRT's names for what a model may run on."""

import enum


class HardwareAccelerator(enum.IntFlag):
    """The devices that a ``CompiledModel`` may use; join flags by ``|``.

    CPU: an OpenCL device of the CPU, and numpy for what it does not take. GPU: an OpenCL GPU; alone, it must take every
    operator. NPU: none, litecl drives no NPU.
    """

    CPU = 1
    GPU = 2
    NPU = 4

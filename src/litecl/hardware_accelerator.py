"""LiteRT's names for the devices that a model may run on."""

import enum


class HardwareAccelerator(enum.IntFlag):
    """The devices that a ``CompiledModel`` may use; join flags with ``|``.

    CPU: an OpenCL CPU device, and numpy for operators that it doesn't take. GPU: an OpenCL GPU; alone, it must take
    every operator. NPU: none, litecl drives no NPU.
    """

    CPU = 1
    GPU = 2
    NPU = 4

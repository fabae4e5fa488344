"""Settings for little code, at the cost of time: small tiles, which are unrolled, and no transformed weights."""

from dataclasses import replace

from litecl.delegate.cpu import schedules
from litecl.delegate.export.machines import ExportMachine
from litecl.delegate.tuning import TileShape, Tuning

_PIXELS = TileShape(1, 1, 1.0)
_DEPTHWISE = "depthwise_conv_2d", "quantized_depthwise_conv_2d"


def small_tuning(width: int) -> Tuning:
    """Return the settings for a vector's width."""
    rows = TileShape(2, 2 if width == 1 else 1, 1.0)
    return Tuning(
        winograd_channels=1e9,  # its weights take four times as much memory
        schedules={
            **{kernel: replace(schedules.DEFAULTS[kernel], tiles=(rows,)) for kernel in schedules.OF_PRODUCTS},
            **{kernel: replace(schedules.DEFAULTS[kernel], tiles=(_PIXELS,)) for kernel in _DEPTHWISE},
        },
    )


def smaller(machine: ExportMachine) -> ExportMachine:
    """Return a machine whose compiler optimizes for size."""
    return replace(machine, options=(*machine.options, "-Oz", "-mno-outline"))

"""Emulates a device with 16-bit floats in numpy (``Emulation``)."""

from litecl.halves.emulation import Emulation as Emulation
from litecl.halves.emulation import Mode as Mode
from litecl.halves.emulation import Ran as Ran

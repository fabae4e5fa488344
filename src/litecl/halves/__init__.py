"""Half precision without a GPU: numpy computes what a device with 16-bit floats does (``Emulation``)."""

from litecl.halves.emulation import Emulation as Emulation
from litecl.halves.emulation import Mode as Mode
from litecl.halves.emulation import Ran as Ran

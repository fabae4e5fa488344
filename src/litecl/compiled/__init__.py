"""The parts of ``litecl.compiled_model``: signatures, the exchange of memory, the choice of a device."""

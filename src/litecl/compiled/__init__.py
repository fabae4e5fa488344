"""The parts of ``litecl.compiled_model``: signatures, buffer exchange, and device selection."""

"""What ``litecl.compiled_model`` is made of: signatures, the exchange of memory, the choice of a device."""

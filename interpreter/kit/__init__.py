"""Tools for writing operators: guards, types, windows, activations. No operator lives here."""

"""Tools that operators are written with: guards, types, windows, activations. No operator lives here."""

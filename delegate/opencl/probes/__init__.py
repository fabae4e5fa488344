"""A device's description of itself, and the abilities that its compiler was found to have."""

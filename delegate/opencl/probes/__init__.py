"""What a device says of itself, and what its compiler was found to be able to do."""

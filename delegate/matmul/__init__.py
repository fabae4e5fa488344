"""Products of matrices and windows over images: tiles, packed weights, patches, Winograd. No operator lives here."""

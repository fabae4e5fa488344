"""Reports of a model on devices: collected as plain data and drawn as one page. Drawing code doesn't touch models."""

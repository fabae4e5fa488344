"""An extension of Model Explorer: ``model-explorer --extensions=litecl.model_explorer MODEL``."""

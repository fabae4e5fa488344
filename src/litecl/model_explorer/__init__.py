"""A Model Explorer extension: ``model-explorer --extensions=litecl.model_explorer MODEL``."""

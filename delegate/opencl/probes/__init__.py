"""Device properties: those that drivers report, and compilers' capabilities, which are probed."""

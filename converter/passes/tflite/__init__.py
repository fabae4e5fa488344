"""TFLite's operators joined and removed, after the lowering; the only room that may import ``interpreter.ops``."""

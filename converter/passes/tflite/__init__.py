"""What the lowering made, tidied up; the only room that may import ``interpreter.ops``."""

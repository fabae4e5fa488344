"""Prints how many files the device `native` compiles for a model, without a cache. Usage: compiled.py MODEL THREADS"""

import sys

from litecl import CLDelegate, Interpreter
from litecl.delegate.progress import BuildStep

steps: list[BuildStep] = []
delegate = CLDelegate("native", num_threads=int(sys.argv[2]), cache_dir=None, progress=steps.append, strict=True)
Interpreter(sys.argv[1], delegates=[delegate]).allocate_tensors()
print(max((step.total for step in steps), default=0))

"""litecl: TensorFlow Lite models on any OpenCL device, loops and recurrent nets included.

Import the parts by name: ``litecl.interpreter``, ``litecl.delegate``, ``litecl.converter``, ``litecl.perf``.
"""

__version__ = "0.1.0"

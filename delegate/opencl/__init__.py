"""The back end for OpenCL: devices, programs, memory and runs. The only package that imports pyopencl."""

from litecl.delegate.opencl import environment as environment  # first: pyopencl reads what it sets on import

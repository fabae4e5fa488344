"""The back end for OpenCL: devices, programs, memory and runs. The only package that imports pyopencl."""

from litecl.delegate.opencl import environment as environment  # first of all: pyopencl reads it when it is imported

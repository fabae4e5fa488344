"""The back end for OpenCL: devices, programs, memory and runs. The only package that imports pyopencl."""

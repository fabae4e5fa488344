"""The back end for the processor: clang compiles kernels to a shared library, and litecl calls it.

It needs no OpenCL driver: numpy allocates memory, and a region is a C function (kernels_cl/region_native.h).
"""

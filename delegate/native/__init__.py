"""The back end for the processor: clang compiles kernels to a shared library, and litecl calls it.

It needs no OpenCL driver: memory is numpy's, and a region is a function (kernels_cl/region_native.h).
"""

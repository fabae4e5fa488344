"""The back end for the processor itself: kernels are compiled to a shared library by clang, and called.

It needs no OpenCL driver: memory is numpy's, and a region is a function (kernels_cl/region_native.h).
"""

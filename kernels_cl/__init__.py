"""The OpenCL C kernels, one ``.cl`` file a kernel family, and ``common.h``, the prelude that every one includes."""

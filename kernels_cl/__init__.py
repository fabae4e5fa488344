"""The OpenCL C kernels, one ``.cl`` file per kernel family, and ``common.h``, the prelude that all of them include."""

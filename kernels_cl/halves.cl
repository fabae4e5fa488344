// Converts elements between half and float; a half is read and written by functions that every OpenCL has.
// A work-item takes per_item elements.
#include "common.h"

KERNEL void widen(ITEM __global const half *x, __global float *y, int n, int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = vload_half(i, x);
}

KERNEL void narrow(ITEM __global const float *x, __global half *y, int n, int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) vstore_half_rte(x[i], i, y);
}

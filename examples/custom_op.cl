// Two results of two arrays: s[i] = a[i] + alpha * b[i], d[i] = a[i] - alpha * b[i].
// A work-item takes per_item elements.
#include "common.h"

KERNEL void butterfly(ITEM __global const float *a, __global const float *b, __global float *s, __global float *d,
                      const int n, const int per_item, const float alpha) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) {
        s[i] = a[i] + alpha * b[i];
        d[i] = a[i] - alpha * b[i];
    }
}

// SOFTMAX of rows of length quantized bytes. A work-item takes per_item whole rows.
// Macros: those of quantized_softmax.h.
#include "quantized_softmax.h"

KERNEL void quantized_softmax(ITEM __global const X *x, __global const int *exponentials, __global T *y, int n,
                              int per_item, int length, int low, int high) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const X *p = x + row * length;
        __global T *q = y + row * length;
        int most = p[0];
        long sum = 0;
        for (int i = 1; i < length; ++i) most = MAX(most, (int)p[i]);
        for (int i = 0; i < length; ++i) sum += divide_by_power(exponentials[most - p[i]], INTEGER_BITS);
        const Division by = division_by(sum);
        for (int i = 0; i < length; ++i) q[i] = divided(exponentials[most - p[i]], by, low, high);
    }
}

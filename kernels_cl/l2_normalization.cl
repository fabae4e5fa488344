// Divides rows of length elements by their Euclidean norms, or by shortest if that is larger.
// A work-item takes per_item whole rows.
// Macro: ACTIVATION, with its arguments low and high.
#include "common.h"

KERNEL void l2_normalization(ITEM __global const float *x, __global float *y, int n, int per_item, int length,
                             float shortest, float low, float high) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *p = x + row * length;
        __global float *q = y + row * length;
        const int room = (n - row) * length, own = (end - row) * length;
        floatv squares = 0.0f;
        for (int i = 0; i < length; i += VW) {
            const floatv v = load_part(p + i, length - i, room - i, 0.0f);
            squares += v * v;
        }
        const float norm = sqrt(sum_lanes(squares));
        const float divisor = MAX(shortest, norm);  // of NaN it is NaN
        for (int i = 0; i < length; i += VW) {
            const floatv v = load_part(p + i, length - i, room - i, 0.0f) / divisor;
            store_part(q + i, ACTIVATION(v, low, high), length - i, own - i);
        }
    }
}

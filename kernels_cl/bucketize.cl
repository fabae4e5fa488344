// BUCKETIZE: y[i] is the number of ascending boundaries that are not above x[i], as C++'s std::upper_bound finds it;
// integers are compared as floats.
// A work-item takes per_item elements.
// Macros: T, the type of the elements; FEW: there are few boundaries and none is NaN, so each is compared with a
// vector.
#include "common.h"

VECTORS_OF(T, t)

KERNEL void bucketize(ITEM __global const T *x, __global const float *boundaries, __global int *y, int n, int per_item,
                      int count) {
    SHARE(n, per_item);
    int i = start;
#ifdef FEW
    for (; i + VW <= end; i += VW) {
        const floatv values = CONVERT(load_t(x + i), float);
        intv buckets = 0;
        for (int k = 0; k < count; ++k) buckets += values < (floatv)(boundaries[k]) ? (intv)(0) : (intv)(1);
        *(__global intv_u *)(y + i) = buckets;
    }
#endif
    for (; i < end; ++i) {
        const float value = (float)x[i];
        int bucket = 0;
        for (int length = count; length > 0;) {
            const int half_length = length / 2, upper = !(value < boundaries[bucket + half_length]);
            bucket += upper ? half_length + 1 : 0;
            length = upper ? length - half_length - 1 : half_length;
        }
        y[i] = bucket;
    }
}

// Elements converted to another type.
// A work-item takes per_item elements.
// Macros: T, R: the types of x and y. OP: CONVERT_TO (C's conversion), TRUTH (is it not zero?) or SATURATE (float to
// integer: truncated, kept within [least, most], NaN to most; limit is most + 1, which is exact as a float).
#include "common.h"

#define CONVERT_TO(x) ((R)(x))
#define TRUTH(x) ((x) != 0)
#define SATURATE(x) ((x) < limit ? ((x) < (float)least ? least : (R)(x)) : most)

KERNEL void cast(ITEM __global const T *x, __global R *y, int n, int per_item, float limit, R least, R most) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = OP(x[i]);
}

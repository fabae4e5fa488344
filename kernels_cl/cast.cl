// Converts elements to another type.
// A work-item takes per_item elements, on a GPU a vector.
// Macros: T, R: the types of x and y. OP: CONVERT_TO (C's conversion), TRUTH (is it not zero?) or SATURATE (float to
// integer: truncates and clamps to [least, most], NaN to most; limit is most + 1, which is exact as a float).
#include "common.h"

#define CONVERT_TO(x) ((R)(x))
#define TRUTH(x) ((x) != 0)
#define SATURATE(x) ((x) < limit ? ((x) < (float)least ? least : (R)(x)) : most)

VECTORS_OF(T, t)
VECTORS_OF(R, r)

KERNEL void cast(ITEM __global const T *x, __global R *y, int n, int per_item, float limit, R least, R most) {
    SHARE(n, per_item);
#ifdef LITECL_GPU
    if (end - start == VW) {
        const VECTOR(T) v = load_t(x + start);
        VECTOR(R) w;
        UNROLL for (int i = 0; i < VW; ++i) ((R *)&w)[i] = OP(((const T *)&v)[i]);
        store_r(y + start, w);
        return;
    }
#endif
    for (int i = start; i < end; ++i) y[i] = OP(x[i]);
}

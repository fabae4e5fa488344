// A function of every element: y[i] = OP(x[i]).
// A work-item takes per_item elements, a whole number of vectors.
// Macros: T, the element type; OP, one of the functions of functions.h; ACTIVATION, for OP=ACTIVATE (see common.h).
// low and high are the activation's arguments.
#include "common.h"
#include "functions.h"

typedef VECTOR(T) Tv;
VECTORS_OF(T, t)

#define ACTIVATE(x) ACTIVATION(x, low, high)

KERNEL void unary(ITEM __global const T *x, __global T *y, int n, int per_item, float low, float high) {
    SHARE(n, per_item);
    int i = start;
    for (; i + VW <= end; i += VW) {
        const Tv v = load_t(x + i);
        store_t(y + i, OP(v));
    }
    for (; i < end; ++i) {
        const Tv v = x[i];
        y[i] = LANE0(OP(v));
    }
}

// A function of every element: y[i] = OP(x[i]).
// A work-item takes per_item elements, a whole number of vectors.
// Macros: T, the element type; OP, one of the functions below; ACTIVATION, for OP=ACTIVATE (see common.h).
// low and high are the activation's arguments.
#include "common.h"

typedef VECTOR(T) Tv;
VECTORS_OF(T, t)

#define ACTIVATE(x) ACTIVATION(x, low, high)
#define ABS(x) abs_v(x)
#define NEG(x) (-(x))
#define EXP(x) exp_v(x)
#define LOG(x) log_v(x)
#define SQRT(x) sqrt(x)
#define RSQRT(x) (1.0f / sqrt(x))
#define SQUARE(x) ((x) * (x))
// Of a vector with an element above 10^6, PoCL 3.0's sin and cos are off by up to 0.016 in elements below 2^-7.
#define SMALL(x) (abs_v(x) < (Tv)0.015625f)
#define SIN(x) (SMALL(x) ? (x) * (1.0f + (x) * (x) * (-1.0f / 6 + (x) * (x) * (1.0f / 120))) : sin(x))
#define COS(x) (SMALL(x) ? 1.0f + (x) * (x) * (-0.5f + (x) * (x) * (1.0f / 24)) : cos(x))
#define CEIL(x) ceil_v(x)
#define FLOOR(x) floor_v(x)
#define ROUND(x) round_v(x)
#define SIGN(x) ((x) > (Tv)0 ? (Tv)1 : ((x) < (Tv)0 ? (Tv)(-1) : ((x) == (Tv)0 ? (Tv)0 : (x))))
#define ABS_INT(x) ((x) < (Tv)0 ? -(x) : (x))
#define LOGICAL_NOT(x) ((x) ^ (Tv)1)

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

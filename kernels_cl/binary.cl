// A function of two arrays that broadcast against each other: c[i] = FINISH(OP(a[i'], b[i"])).
// The loops go row by row; within a row each array advances (a_step, b_step: 1) or repeats (REPEATED in common.h).
// A work-item takes per_item consecutive elements of c.
// nest: rank, dims[rank], strides of a[rank], strides of b[rank].
// Macros: T, the type of a and b; R, the type of c; OP, one of the functions below; FINISH, applied to its result:
// ACTIVATE (float, by ACTIVATION), BOUND (clamp to [low, high]) or TRUTH (0 or 1); FLOATING, if T is float.
#include "common.h"
#include "operators.h"

typedef VECTOR(T) Tv;
typedef VECTOR(R) Rv;
VECTORS_OF(T, t)
VECTORS_OF(R, r)

#define POW(a, b) pow(a, b)
#define RAISED(a, b) raised(a, (int)LANE0(b))
#define RAISED_INVERSE(a, b) raised((Tv)1 / (a), -(int)LANE0(b))
#define ROOT(a, b) ((a) == -INFINITY ? (Tv)INFINITY : sqrt((a) + 0.0f))  // -0 to the power of a half is 0
#define ATAN2(a, b) atan2(a, b)
#define BITWISE_XOR(a, b) ((a) ^ (b))
#define FLOOR_DIV(a, b) floor_div(a, b)
#define FLOOR_MOD(a, b) floor_mod(a, b)
#define DIV_INT(a, b) div_int(a, b)
#define FLOOR_DIV_INT(a, b) floor_div_int(a, b)
#define FLOOR_MOD_INT(a, b) floor_mod_int(a, b)

// x to the power of n >= 0, which is the same for all elements, by squaring.
inline Tv raised(Tv x, int n) {
    Tv y = 1;
    for (; n > 1; n >>= 1) {
        if (n & 1) y *= x;
        x *= x;
    }
    return n == 1 ? x * y : y;
}

#ifdef FLOATING
// Lanes in which the remainder's sign is not the divisor's. Their product might underflow.
inline intv is_across(floatv x, floatv b) { return (x < 0.0f && b > 0.0f) || (x > 0.0f && b < 0.0f); }

// A quotient may round up to a whole number that the exact one does not reach, which the remainder's sign shows. GPUs
// may also round it to the float below.
inline floatv floor_div(floatv a, floatv b) {
    const floatv quotient = floor(a / b);
    const floatv remainder = fma(-quotient, b, a);  // rounded once: by a processor without an instruction for it, too
#ifdef LITECL_CPU
    return is_across(remainder, b) ? quotient - 1.0f : quotient;
#else
    const floatv more = fabs(remainder) >= fabs(b) ? quotient + 1.0f : quotient;
    return is_across(remainder, b) ? quotient - 1.0f : more;
#endif
}

inline floatv floor_mod(floatv a, floatv b) {
    const floatv remainder = fmod(a, b);
    return is_across(remainder, b) ? remainder + b : remainder;
}

#else
// Division by -1 is a negation: the least integer divided by -1 traps on some CPUs.
inline Tv div_int(Tv a, Tv b) { return b == (Tv)-1 ? -a : a / (b == (Tv)-1 ? (Tv)1 : b); }

inline Tv floor_mod_int(Tv a, Tv b) {
    const Tv remainder = a % (b == (Tv)-1 ? (Tv)1 : b);
    return remainder != (Tv)0 && (remainder ^ b) < (Tv)0 ? remainder + b : remainder;
}

inline Tv floor_div_int(Tv a, Tv b) { return div_int(a - floor_mod_int(a, b), b); }
#endif

#define ACTIVATE(x) ACTIVATION(x, low, high)
#define BOUND(x) ((x) < (Tv)low ? (Tv)low : ((x) > (Tv)high ? (Tv)high : (x)))
#define TRUTH(x) (CONVERT(x, R) & (Rv)1)

// One row. A and B read a vector of each array, a and b an element.
#define ROW(A, B, a, b)                                        \
    for (; i + VW <= count; i += VW) {                         \
        const Tv p = (A), q = (B);                             \
        store_r(z + i, FINISH(OP(p, q)));                      \
    }                                                          \
    for (; i < count; ++i) {                                   \
        const Tv p = (a), q = (b);                             \
        z[i] = LANE0(FINISH(OP(p, q)));                        \
    }

KERNEL void binary(ITEM __global const T *a, __global const T *b, __global R *c, __global const int *nest, int n,
                   int per_item, int row, int a_step, int b_step, T low, T high) {
    SHARE(n, per_item);
    if (start >= end) return;
    if (n == 1) {  // a loop's counter or condition: not worth the loops
        const Tv p = a[0], q = b[0];
        c[0] = LANE0(FINISH(OP(p, q)));
        return;
    }
    const int line = row < n ? start / row : 0;  // a single row needs no division
    int column = start - line * row;
    SEEK_ROWS(nest, 2, line);
    for (int at = start, count; at < end; at += count) {
        __global const T *x = a + offsets[0] + MAX(a_step, 0) * column;
        __global const T *y = b + offsets[1] + MAX(b_step, 0) * column;
        __global R *z = c + at;
        const int first = column;
        count = MIN(row - column, end - at);
        column = 0;
        NEXT_ROW(nest, 2, at + count == end);
        int i = 0;
        if (a_step > 0 && b_step > 0) {
            ROW(load_t(x + i), load_t(y + i), x[i], y[i])
        } else if (a_step > 0) {
            REPEATED(T, again, y, first, b_step)
            ROW(load_t(x + i), again, x[i], LANE(T, again, i))
        } else {
            REPEATED(T, again, x, first, a_step)
            ROW(again, load_t(y + i), LANE(T, again, i), y[i])
        }
    }
}

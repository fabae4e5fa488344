// ADD, SUB and MUL of quantized arrays that broadcast against each other (see binary.cl for the loops and the shares).
// Sums: both operands, less their zero points and shifted left, are scaled to a common step, and the sum to c's.
// LINEAR: the host has checked that for all pairs of bytes the result is floor((x a + y b + c) / 2^(14 + shift)). The
// factors have 28 bits, in two words each, and c is base 2^14 + rest.
// Macros: OP: ADDED, SUBTRACTED or MULTIPLIED; LINEAR; T (quantized.h).
#include "quantized.h"

#ifdef LINEAR
#include <LinearSum>
typedef LinearSum Scales;

inline intv combine(intv x, intv y, const Scales s) {
    const intv pairs = (x & 0xffff) | y << 16;
    const intv low = DOT2((intv)s.rest, pairs, (intv)s.low) >> 14;
    return clamp_int(DOT2(low + s.base, pairs, (intv)s.high) >> s.shift, s.least, s.most);
}
#else
#include <ScaledPair>
typedef ScaledPair Scales;

#define SCALED_A(x) rescale(((x) - s.a_zero) << s.left_shift, s.a)
#define SCALED_B(x) rescale(((x) - s.b_zero) << s.left_shift, s.b)
#define ADDED(x, y) (SCALED_A(x) + SCALED_B(y))
#define SUBTRACTED(x, y) (SCALED_A(x) - SCALED_B(y))
#define MULTIPLIED(x, y) (((x) - s.a_zero) * ((y) - s.b_zero))

inline intv combine(intv x, intv y, const Scales s) {
    return clamp_int(rescale(OP(x, y), s.c) + s.bounds.zero, s.bounds.low, s.bounds.high);
}
#endif

VECTORS_OF(T, t)

KERNEL void quantized_binary(ITEM __global const T *a, __global const T *b, __global T *c,
                             __global const int *nest, __global const Scales *scales, int n, int per_item, int row,
                             int a_step, int b_step) {
    SHARE(n, per_item);
    const Scales s = *scales;  // copies, which writes to c cannot change
    int column = start % row;
    SEEK_ROWS(nest, 2, start / row);
    for (int at = start, count; at < end; at += count) {
        __global const T *x = a + offsets[0] + MAX(a_step, 0) * column;
        __global const T *y = b + offsets[1] + MAX(b_step, 0) * column;
        REPEATED(T, own_a, x, column, a_step)
        REPEATED(T, own_b, y, column, b_step)
        const intv all_a = CONVERT(own_a, int), all_b = CONVERT(own_b, int);
        count = MIN(row - column, end - at);
        column = 0;
        NEXT_ROW(nest, 2, at + count == end);
        int i = 0;
        for (; i + VW <= count; i += VW) {
            const intv p = a_step > 0 ? CONVERT(load_t(x + i), int) : all_a, q = b_step > 0 ? CONVERT(load_t(y + i), int) : all_b;
            store_t(c + at + i, CONVERT(combine(p, q, s), T));
        }
        if (i < count) {
            const intv p = a_step > 0 ? load_lanes(x + i, count - i) : all_a;
            const intv q = b_step > 0 ? load_lanes(y + i, count - i) : all_b;
            store_lanes(c + at + i, CONVERT(combine(p, q, s), T), count - i);
        }
    }
}

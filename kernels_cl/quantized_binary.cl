// ADD, SUB, MUL, DIV and comparisons of quantized arrays that broadcast against each other (see binary.cl for the loops
// and the shares).
// Sums: both operands, less their zero points and shifted left, are scaled to a common step, and the sum is scaled to
// c's. Operands of comparisons are scaled likewise. Quotients of words are products with the reciprocals of divisors'
// magnitudes, from a table. A division by 0, which a kernel cannot report, gives the end of the range on the dividend's
// side, and 0 for 0 / 0.
// LINEAR: the host has checked that for all pairs of bytes the result is floor((x a + y b + c) / 2^(14 + shift)). The
// factors have 28 bits, in two words each, and c is base 2^14 + rest.
// Macros: OP: ADDED, SUBTRACTED, MULTIPLIED or, with COMPARES, EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER or
// GREATER_EQUAL; or DIVIDES; or LINEAR; T, OUT (quantized.h).
#include "quantized.h"

#ifdef LINEAR
#include <delegate.ops.quantized.binary.LinearSum>
typedef LinearSum Scales;

// pairs: of words, an element of each array.
inline intv scaled_sum(const intv pairs, const Scales s) {
    const intv low = DOT2((intv)s.rest, pairs, (intv)s.low) >> 14;
    return DOT2(low + s.base, pairs, (intv)s.high) >> s.shift;
}

inline intv combine(intv x, intv y, const Scales s) {
    return clamp_int(scaled_sum((x & 0xffff) | y << 16, s), s.least, s.most);
}

#if defined(LITECL_NATIVE) && (defined(VNNI) || defined(MULTIPLY_PAIRS)) && (VW == 16 || VW == 8 && defined(__AVX2__))
#define TWICE (2 * VW)
typedef T Bytes __attribute__((vector_size(TWICE), aligned(1)));

// PART(n): of each 16 bytes of two vectors of words, four words from n on, interleaved. PACKED puts sums back in order.
#define PART(n, i) n + (i), TWICE + n + (i), n + (i) + 1, TWICE + n + (i) + 1, \
    n + (i) + 2, TWICE + n + (i) + 2, n + (i) + 3, TWICE + n + (i) + 3
#if VW == 16
#define INTERLEAVED(n) PART(n, 0), PART(n, 8), PART(n, 16), PART(n, 24)
#define PACKED __builtin_ia32_packssdw512
#else
#define INTERLEAVED(n) PART(n, 0), PART(n, 8)
#define PACKED __builtin_ia32_packssdw256
#endif

// Combines TWICE elements.
inline void combine_twice(__global T *out, __global const T *x, __global const T *y, const Scales s) {
    const words_of_intv a = __builtin_convertvector(*(__global const Bytes *)x, words_of_intv);
    const words_of_intv b = __builtin_convertvector(*(__global const Bytes *)y, words_of_intv);
    const intv first = AS_INTV(__builtin_shufflevector(a, b, INTERLEAVED(0)));
    const intv second = AS_INTV(__builtin_shufflevector(a, b, INTERLEAVED(4)));
    words_of_intv sums = PACKED(scaled_sum(first, s), scaled_sum(second, s));
    sums = __builtin_elementwise_max(sums, (words_of_intv)((short)s.least - (words_of_intv){}));
    sums = __builtin_elementwise_min(sums, (words_of_intv)((short)s.most - (words_of_intv){}));
    *(__global Bytes *)out = __builtin_convertvector(sums, Bytes);
}
#endif
#else
#include <delegate.ops.quantized.binary.ScaledPair>
typedef ScaledPair Scales;

#define SCALED_A(x) rescale(((x) - s.a_zero) << s.left_shift, s.a)
#define SCALED_B(x) rescale(((x) - s.b_zero) << s.left_shift, s.b)
#define ADDED(x, y) (SCALED_A(x) + SCALED_B(y))
#define SUBTRACTED(x, y) (SCALED_A(x) - SCALED_B(y))
#define MULTIPLIED(x, y) (((x) - s.a_zero) * ((y) - s.b_zero))
#define EQUAL(x, y) (SCALED_A(x) == SCALED_B(y))
#define NOT_EQUAL(x, y) (SCALED_A(x) != SCALED_B(y))
#define LESS(x, y) (SCALED_A(x) < SCALED_B(y))
#define LESS_EQUAL(x, y) (SCALED_A(x) <= SCALED_B(y))
#define GREATER(x, y) (SCALED_A(x) > SCALED_B(y))
#define GREATER_EQUAL(x, y) (SCALED_A(x) >= SCALED_B(y))

#if defined(COMPARES)
inline intv combine(intv x, intv y, const Scales s) { return OP(x, y) & 1; }
#elif defined(DIVIDES)
// The position of the highest set bit of x, from 1 to 2^24 - 1.
inline intv highest_bit(intv x) { return (AS_INTV(CONVERT(x, float)) >> 23) - 127; }

inline intv combine(intv x, intv y, const Scales s, __global const int *reciprocals) {
    const intv divisor = y - s.b_zero, dividend = x - s.a_zero;
    const intv size = divisor < 0 ? -divisor : divisor, signed_x = divisor < 0 ? -dividend : dividend;
    intv inverse;
    for (int i = 0; i < VW; ++i) ((int *)&inverse)[i] = reciprocals[((const int *)&size)[i]];
    const intv bits = signed_x < 0 ? ~signed_x : signed_x;
    const intv headroom = bits > 0 ? 30 - highest_bit(bits) : (intv)31;
    const intv scaled = multiply_high(multiply_high(signed_x << headroom, inverse), (intv)s.c.multiplier);
    const intv places = highest_bit(size) + headroom + (s.c.right - s.c.left);
    // Beyond 0 to 31 places TFLite's builds shift modulo 32.
    const intv within = divide_by_power_v(scaled, places & 31);
    const intv beyond = (scaled >> (places & 31)) + (scaled >= 0 ? (intv)1 : (intv)0);
    const intv endless = dividend > 0 ? (intv)(1 << 24) : (dividend < 0 ? (intv)-(1 << 24) : (intv)0);
    const intv quotient = size > 0 ? ((places & ~31) == 0 ? within : beyond) : endless;
    return clamp_int(quotient + s.bounds.zero, s.bounds.low, s.bounds.high);
}
#else
inline intv combine(intv x, intv y, const Scales s) {
    return clamp_int(rescale(OP(x, y), s.c) + s.bounds.zero, s.bounds.low, s.bounds.high);
}
#endif
#endif

VECTORS_OF(T, t)
VECTORS_OF(OUT, out)

#ifdef DIVIDES
#define COMBINE(p, q) combine(p, q, s, reciprocals)
#else
#define COMBINE(p, q) combine(p, q, s)
#endif

KERNEL void quantized_binary(ITEM __global const T *a, __global const T *b, __global OUT *c,
                             __global const int *nest, __global const Scales *scales, int n, int per_item, int row,
                             int a_step, int b_step
#ifdef DIVIDES
                             , __global const int *reciprocals
#endif
) {
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
#ifdef TWICE
        if (a_step > 0 && b_step > 0)
            for (; i + TWICE <= count; i += TWICE) combine_twice(c + at + i, x + i, y + i, s);
#endif
        for (; i + VW <= count; i += VW) {
            const intv p = a_step > 0 ? CONVERT(load_t(x + i), int) : all_a, q = b_step > 0 ? CONVERT(load_t(y + i), int) : all_b;
            store_out(c + at + i, CONVERT(COMBINE(p, q), OUT));
        }
        if (i < count) {
            const intv p = a_step > 0 ? load_lanes(x + i, count - i) : all_a;
            const intv q = b_step > 0 ? load_lanes(y + i, count - i) : all_b;
            store_lanes(c + at + i, CONVERT(COMBINE(p, q), OUT), count - i);
        }
    }
}

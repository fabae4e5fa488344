// SOFTMAX of rows of length quantized bytes, in fixed point (reference/softmax.h).
// exponentials: of the differences 0, -1, .. -255 from the largest element, without integer bits; 0 where they are too
// small to count. A sum of them has 12 integer bits.
// A work-item takes per_item whole rows; with ITEMS, on a GPU, a group takes a row.
// Macros: X, the type of x; T, the type of y, to whose range [low, high] results are clamped; BITS, of a T; ITEMS of a
// group, a power of two.
#include "quantized.h"

#define INTEGER_BITS 12

// x m / 2^31, rounded, halves up, saturated.
inline int high_product(int x, int m) {
    return x == INT_MIN && m == INT_MIN ? INT_MAX : (int)(((long)x * m + (1L << 30)) >> 31);
}

// x / 2^exponent, halves away from zero.
inline int divide_by_power(int x, int exponent) {
    const int mask = (int)((1L << exponent) - 1), rest = x & mask;
    return (x >> exponent) + (rest > (mask >> 1) + (x < 0));
}

inline int saturate(long x) { return x > INT_MAX ? INT_MAX : (x < INT_MIN ? INT_MIN : (int)x); }

// 1 / (1 + x) for x in [0, 1), without integer bits: Newton's division of half the denominator, with two integer bits
// (gemmlowp, one_over_one_plus_x_for_x_in_0_1).
inline int one_over_one_plus(int x) {
    const int half_denominator = (int)(((long)x + INT_MAX + 1) / 2);
    int y = 1515870810 + high_product(half_denominator, -1010580540);
    for (int i = 0; i < 3; ++i) {
        const int rest = (1 << 29) - high_product(half_denominator, y);
        y += saturate((long)high_product(y, rest) * 4);
    }
    return saturate((long)y * 2);
}

// A row's exponentials are divided by their sum: multiplied by its inverse, and by a power of two.
typedef struct {
    int inverse, exponent;
} Division;

inline Division division_by(const long sum) {
    int headroom = 0;  // negative where the sum has more than 32 bits
    while (headroom < 31 && sum << headroom < 0x80000000L) ++headroom;
    while (headroom <= 0 && sum >> -headroom > 0xffffffffL) --headroom;
    const long whole = headroom < 0 ? sum >> -headroom : sum << headroom;
    return (Division){one_over_one_plus((int)(whole - 0x80000000L)), INTEGER_BITS - headroom + 31 - BITS};
}

inline T divided(const int e, const Division by, const int low, const int high) {
    const int result = divide_by_power(high_product(e, by.inverse), by.exponent) + low;
    return (T)(e == 0 || by.exponent > 31 ? low : MIN(MAX(result, low), high));  // less than half a step
}

#ifdef ITEMS
#include "combine.h"

KERNEL void quantized_softmax_local(ITEM __global const X *restrict x, __global const int *restrict exponentials,
                                    __global T *restrict y, __local long *restrict memory, const int length,
                                    const int low, const int high) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    y += (size_t)get_group_id(0) * length;
    long most = x[0], sum = 0;
    for (int i = item; i < length; i += ITEMS) most = MAX(most, (long)x[i]);
    COMBINE(MAX, most, most)
    for (int i = item; i < length; i += ITEMS) sum += divide_by_power(exponentials[most - x[i]], INTEGER_BITS);
    COMBINE(ADD, sum, sum)
    const Division by = division_by(sum);
    for (int i = item; i < length; i += ITEMS) y[i] = divided(exponentials[most - x[i]], by, low, high);
}
#else
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
#endif

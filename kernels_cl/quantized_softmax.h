// The fixed-point arithmetic of SOFTMAX of quantized bytes (reference/softmax.h): exponentials and their divisor.
//
// exponentials: e^x for the differences 0, -1, .. -255 from the largest element, without integer bits; 0 where too
// small to count. A sum of them has 12 integer bits.
// Macros: X, the type of x; T, the type of y, to whose range [low, high] results are clamped; BITS, of a T.
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

// 1 / (1 + x) for x in [0, 1), without integer bits: Newton's division by half the denominator, with two integer bits
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

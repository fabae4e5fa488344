// Real: float64. A device without float64 computes the same numbers in integers, to the last bit.
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double Real;
#define REAL(x) ((double)(x))
#define PLUS(a, b) ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#define OVER(a, b) ((a) / (b))
#define ROOT(a) sqrt(a)
#define LESS(a, b) ((a) < (b))
#define TRUNCATED(a) ((int)(a))
#define AS_FLOAT(a) ((float)(a))
#else
// mantissa * 2^exponent, and a sign. The mantissa has 53 bits, or is 0. Exponents are unbounded: callers stay far from
// float64's limits.
typedef struct {
    ulong mantissa;
    int exponent, negative;
} Real;

// (2^64 high + low) * 2^exponent, rounded to 53 bits, halves to even.
inline Real nearest_real(ulong high, ulong low, int exponent, int negative) {
    if (high == 0) {
        high = low;
        low = 0;
        exponent -= 64;
    }
    if (high == 0) return (Real){0, 0, 0};
    const int zeros = (int)clz(high);
    if (zeros > 0) {
        high = high << zeros | low >> (64 - zeros);
        low <<= zeros;
    }
    const ulong rest = high & 2047, kept = high >> 11;
    const ulong mantissa = kept + (rest > 1024 || (rest == 1024 && (low != 0 || (kept & 1) != 0)) ? 1 : 0);
    const int carry = (int)(mantissa >> 53);
    return (Real){mantissa >> carry, exponent - zeros + 75 + carry, negative};
}

inline Real real_of_long(long x) { return nearest_real(0, x < 0 ? -(ulong)x : (ulong)x, 0, x < 0); }

// bits: of a float64 that is finite.
inline Real real_of_bits(ulong bits) {
    const int biased = (int)(bits >> 52 & 2047);
    const ulong fraction = bits & 0xfffffffffffffUL;
    return nearest_real(0, biased == 0 ? fraction : fraction | 1UL << 52, (biased == 0 ? 1 : biased) - 1075, (int)(bits >> 63));
}

inline Real real_of_float(float x) {
    const uint bits = as_uint(x), biased = bits >> 23 & 255, fraction = bits & 0x7fffff;
    return nearest_real(0, biased == 0 ? fraction : fraction | 1 << 23, (int)(biased == 0 ? 1 : biased) - 150, (int)(bits >> 31));
}

inline Real negated(Real a) { return (Real){a.mantissa, a.exponent, !a.negative}; }

inline Real times(Real a, Real b) {
    const int negative = a.negative != b.negative;
    return nearest_real(mul_hi(a.mantissa, b.mantissa), a.mantissa * b.mantissa, a.exponent + b.exponent, negative);
}

// Both are aligned in 128 bits, the larger exponent's from bit 126 down; bits that fall off leave one sticky bit.
inline Real plus(Real a, Real b) {
    if (a.mantissa == 0) return b;
    if (b.mantissa == 0) return a;
    const Real x = a.exponent < b.exponent ? b : a, y = a.exponent < b.exponent ? a : b;
    const int right = x.exponent - y.exponent;
    const ulong x_high = x.mantissa << 10, shifted = y.mantissa << 10;
    ulong high = 0, low = 1;
    if (right < 64) {
        high = shifted >> right;
        low = right == 0 ? 0 : shifted << (64 - right);
    } else if (right < 75)
        low = shifted >> (right - 64);
    if (x.negative == y.negative) return nearest_real(x_high + high, low, x.exponent - 74, x.negative);
    if (x_high < high) return nearest_real(high - x_high, low, x.exponent - 74, y.negative);  // low is 0: right is
    return nearest_real(x_high - high - (low != 0 ? 1 : 0), -low, x.exponent - 74, x.negative);
}

// 60 bits of the quotient, and a sticky bit for the remainder.
inline Real over(Real a, Real b) {
    ulong quotient = 0, rest = a.mantissa;
    for (int i = 0; i < 60; ++i) {
        const ulong bit = rest >= b.mantissa ? 1 : 0;
        quotient = quotient << 1 | bit;
        rest = (rest - (bit != 0 ? b.mantissa : 0)) << 1;
    }
    return nearest_real(quotient, rest != 0 ? 1 : 0, a.exponent - b.exponent - 123, a.negative != b.negative);
}

// The root of a number >= 0: 60 bits of the root of mantissa * 2^66, and a sticky bit for the remainder.
inline Real root(Real a) {
    const int odd = a.exponent & 1;
    const ulong x = a.mantissa << odd;
    ulong found = 0, rest = 0;
    for (int place = 52; place >= -66; place -= 2) {
        rest = rest << 2 | (place < 0 ? 0 : x >> place & 3);
        const ulong next = found << 2 | 1, bit = rest >= next ? 1 : 0;
        rest -= bit != 0 ? next : 0;
        found = found << 1 | bit;
    }
    return nearest_real(found, rest != 0 ? 1 : 0, (a.exponent - odd) / 2 - 97, 0);
}

inline int truncated(Real a) {
    const int right = -a.exponent, whole = right > 63 ? 0 : (int)(a.mantissa >> right);
    return a.negative ? -whole : whole;
}

// Rounded to 24 bits, or fewer where the float is subnormal, halves to even.
inline float nearest_float(Real a) {
    const int right = MAX(29, -149 - a.exponent);
    if (a.mantissa == 0 || right > 54) return 0.0f;
    const ulong tie = 1UL << (right - 1), kept = a.mantissa >> right, rest = a.mantissa & (2 * tie - 1);
    const uint fraction = (uint)(kept + (rest > tie || (rest == tie && (kept & 1) != 0) ? 1 : 0));
    return as_float(((uint)(a.exponent + right + 149) << 23) + fraction | (uint)a.negative << 31);
}

#define REAL(x) real_of_float(x)
#define PLUS(a, b) plus(a, b)
#define MINUS(a, b) plus(a, negated(b))
#define OVER(a, b) over(a, b)
#define ROOT(a) root(a)
#define LESS(a, b) less(a, b)
#define TRUNCATED(a) truncated(a)
#define AS_FLOAT(a) nearest_float(a)

inline int less(Real a, Real b) {
    const Real difference = MINUS(a, b);
    return difference.negative && difference.mantissa != 0;
}
#endif

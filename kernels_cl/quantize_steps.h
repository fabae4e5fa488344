// How a row of floats becomes bytes at run time, as in TFLite's hybrid kernels (SymmetricQuantizeFloats and
// AsymmetricQuantizeFloats in neon_tensor_utils.cc, which rounds before it adds the zero point). Products are not
// contracted from here on.
#include "float64.h"

#pragma OPENCL FP_CONTRACT OFF  // a product that is not rounded may end up on the other side of a half

// How a row is quantized: q = round(x * inverse) + zero, clamped to [low, 127].
typedef struct {
    float scale, inverse, zero, low;
} Step;

inline Real magnitude(Real x) { return LESS(x, REAL(0.0f)) ? MINUS(REAL(0.0f), x) : x; }

#define SHORTEST (127 * 0x1p-126f)  // a length that is safe to divide by and into

#define TO_WHOLE 12582912.0f  // 1.5 * 2^23: added and taken away it rounds a small number, halves to even

inline float nearest(float x) { return (x + TO_WHOLE) - TO_WHOLE; }

// low, high: the range of a row. With an infinite value the scale, and every result of the row, is NaN.
inline Step symmetric_step(float low, float high) {
    const float largest = MAX(-low, high), length = MAX(largest, SHORTEST), unknown = largest - largest;
    return largest == 0 ? (Step){1, 0, 0, -127} : (Step){length / 127 + unknown, 127 / length, 0, -127};
}

// Of the zero points at both ends of the range, the one with the smaller rounding error.
inline Step asymmetric_step(float low, float high) {
    if (high - low < SHORTEST) return (Step){1, 1, -128, -128};  // zeros: with bytes of 0, no sum has anything to cancel
    if (high - low == INFINITY) return (Step){NAN, 0, -128, -128};
    const Real scale = OVER(REAL(high - low), REAL(255.0f));
    const Real least = OVER(REAL(low), scale), most = OVER(REAL(high), scale);
    const int at_least = LESS(PLUS(magnitude(least), REAL(128.0f)), PLUS(magnitude(most), REAL(127.0f)));
    const Real zero = at_least ? MINUS(REAL(-128.0f), least) : MINUS(REAL(127.0f), most);
    const int whole = TRUNCATED(PLUS(zero, REAL(LESS(zero, REAL(0.0f)) ? -0.5f : 0.5f)));
    return (Step){AS_FLOAT(scale), 1 / AS_FLOAT(scale), MIN(MAX(whole, -128), 127), -128};
}

// As XNNPACK (xnn_f32_qd8_asymmetric_quantization_params): in floats, halves to even; as LiteRT where these overflow.
inline Step nearest_step(float low, float high) {
    const float length = high - low;
    if (!(length >= SHORTEST && length < INFINITY)) return asymmetric_step(low, high);
    const float inverse = 255.0f / length, least = low * inverse, most = high * inverse;
    const float zero = (-128.0f + least) + (127.0f + most) > 0 ? -128.0f - least : 127.0f - most;
    return (Step){1 / inverse, inverse, nearest(MIN(MAX(zero, -128.0f), 127.0f)), -128};
}

// The steps of VW rows.
typedef struct {
    floatv scale, inverse, zero;
} Steps;

INLINE Steps nearest_steps(const floatv low, const floatv high) {
    const floatv length = high - low, inverse = 255.0f / length, least = low * inverse, most = high * inverse;
    const floatv zero = (-128.0f + least) + (127.0f + most) > 0.0f ? -128.0f - least : 127.0f - most;
    Steps by = {1.0f / inverse, inverse, (MIN(MAX(zero, -128.0f), 127.0f) + TO_WHOLE) - TO_WHOLE};
    float shortest, longest;
    FOLD(float, length, MIN, shortest)
    FOLD(float, length, MAX, longest)
    if (shortest < SHORTEST || longest == INFINITY)
        for (int r = 0; r < VW; ++r) {
            const Step one = nearest_step(((const float *)&low)[r], ((const float *)&high)[r]);
            ((float *)&by.scale)[r] = one.scale;
            ((float *)&by.inverse)[r] = one.inverse;
            ((float *)&by.zero)[r] = one.zero;
        }
    return by;
}

inline Step step_between(const float low, const float high, const int asymmetric) {
    return asymmetric ? asymmetric_step(low, high) : symmetric_step(low, high);
}

// The smallest and the largest number of a row, and 0, by their bits, which sort like numbers (negative ones by
// magnitude). NaN sorts after infinity, and counts as such.
typedef struct {
    uintv low;
    intv high;
} Range;

#define RANGE_OF_ZERO {(uintv)(0x80000000u), (intv)(0)}

INLINE void widen(Range *range, const floatv v) {
    range->low = MAX(AS_UINTV(v), range->low);
    range->high = MAX(AS_INTV(v), range->high);
}

INLINE float lowest(const Range range) {
    uint bits;
    FOLD(uint, range.low, MAX, bits)
    return MAX(as_float(bits), -INFINITY);
}

INLINE float highest(const Range range) {
    int bits;
    FOLD(int, range.high, MAX, bits)
    return MIN(as_float(bits), INFINITY);
}

inline intv limited(intv whole, Step by) {
    const intv low = (int)by.low, high = 127;
    return whole < low ? low : (whole > high ? high : whole);
}

// x as a byte; std::round rounds halves away from zero.
inline intv quantized(floatv x, Step by) {
    const floatv y = x * by.inverse, z = y + copysign_v((floatv)(0.49999997f), y), most = 512.0f;
    return limited(CONVERT(z < -most ? -most : (z > most ? most : z), int) + (int)by.zero, by);
}

// x as a byte, halves rounded to even. Clamping may come first, since values between two whole numbers round to one of
// them. The last bits of a float of this size are those of the whole number.
inline intv nearest_quantized(floatv x, Step by) {
    const floatv y = x * by.inverse, low = by.low - by.zero, high = 127.0f - by.zero;
    const floatv z = MIN(MAX(y, low), high) + TO_WHOLE;
    return AS_INTV(z) + ((int)by.zero - as_int(TO_WHOLE));
}

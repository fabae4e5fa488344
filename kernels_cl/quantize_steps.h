// How a row of floats becomes bytes at run time, as in TFLite's hybrid kernels (SymmetricQuantizeFloats and
// AsymmetricQuantizeFloats in portable_tensor_utils.cc). Products are not contracted from here on.
#include "float64.h"

#pragma OPENCL FP_CONTRACT OFF  // a product that is not rounded may end up on the other side of a half

// How a row is quantized: q = round(x * inverse + zero), clamped to [low, 127].
typedef struct {
    float scale, inverse, zero, low;
} Step;

inline Real magnitude(Real x) { return LESS(x, REAL(0.0f)) ? MINUS(REAL(0.0f), x) : x; }

inline Step symmetric_step(float low, float high) {
    const float largest = MAX(MAX(-low, high), 127 * 0x1p-126f);  // which is safe to divide by and into
    return (Step){largest / 127, 127 / largest, 0, -127};
}

// Of the two zero points that the ends of the range give, the one with the smaller rounding error.
inline Step asymmetric_step(float low, float high) {
    if (low == high) return (Step){1, 1, -128, -128};  // zeros: with bytes of 0, no sum has anything to cancel
    const Real scale = OVER(MINUS(REAL(high), REAL(low)), REAL(255.0f));
    const Real least = OVER(REAL(low), scale), most = OVER(REAL(high), scale);
    const int at_least = LESS(PLUS(magnitude(least), REAL(128.0f)), PLUS(magnitude(most), REAL(127.0f)));
    const Real zero = at_least ? MINUS(REAL(-128.0f), least) : MINUS(REAL(127.0f), most);
    const int whole = TRUNCATED(PLUS(zero, REAL(LESS(zero, REAL(0.0f)) ? -0.5f : 0.5f)));
    return (Step){AS_FLOAT(scale), 1 / AS_FLOAT(scale), MIN(MAX(whole, -128), 127), -128};
}

// low, high: the range of a row, infinite for one with elements that are infinite or no number: of its products nothing
// is known.
inline Step step_between(const float low, const float high, const int asymmetric) {
    if (low == -INFINITY || high == INFINITY) return (Step){NAN, 0, -128, -128};
    return asymmetric ? asymmetric_step(low, high) : symmetric_step(low, high);
}

// The range of a row to which v belongs: with what is no number it is infinite.
INLINE void widen_range(floatv *low, floatv *high, const floatv v) {
    *low = min_v(v, *low);
    *high = v != v ? (floatv)(INFINITY) : max_v(v, *high);
}

// x as a byte less its zero point, as std::round rounds: halves away from zero.
inline intv quantized(floatv x, Step by) {
    const floatv y = x * by.inverse + by.zero;
    const floatv z = y + copysign_v((floatv)(0.49999997f), y);
    return CONVERT(z < by.low ? (floatv)(by.low) : (z > 127.0f ? (floatv)(127.0f) : z), int);
}

// How a row of floats becomes bytes at run time, as in TFLite's hybrid kernels (SymmetricQuantizeFloats and
// AsymmetricQuantizeFloats in portable_tensor_utils.cc).
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF  // a product that is not rounded may end up on the other side of a half

// How a row is quantized: q = round(x * inverse + zero), clamped to [low, 127].
typedef struct {
    float scale, inverse, zero, low;
} Step;

inline double magnitude(double x) { return x < 0 ? -x : x; }

inline Step symmetric_step(float low, float high) {
    const float largest = MAX(-low, high);
    return largest == 0 ? (Step){1, 0, 0, -127} : (Step){largest / 127, 127 / largest, 0, -127};
}

// Of the two zero points that the ends of the range suggest, the one with the smaller rounding error.
inline Step asymmetric_step(float low, float high) {
    if (low == high) return (Step){1, 1, 0, -128};
    const double scale = ((double)high - low) / 255, least = low / scale, most = high / scale;
    const double zero = magnitude(least) + 128 < magnitude(most) + 127 ? -128 - least : 127 - most;
    const int whole = (int)(zero < 0 ? zero - 0.5 : zero + 0.5);
    return (Step){(float)scale, 1 / (float)scale, MIN(MAX(whole, -128), 127), -128};
}

inline Step step_between(const float low, const float high, const int asymmetric) {
    return asymmetric ? asymmetric_step(low, high) : symmetric_step(low, high);
}

// x as a byte less its zero point, as std::round rounds: halves away from zero.
inline intv quantized(floatv x, Step by) {
    const floatv y = x * by.inverse + by.zero;
    const floatv z = y + copysign_v((floatv)(0.49999997f), y);
    return CONVERT(z < by.low ? (floatv)(by.low) : (z > 127.0f ? (floatv)(127.0f) : z), int);
}

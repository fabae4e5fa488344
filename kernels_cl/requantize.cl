// Quantizes, dequantizes, and converts one quantization to another; see interpreter/ops/quantize.py.
// A work-item takes per_item elements.
// Macros: X, the type of x; T, the type of y, to whose range [low, high] results are clamped.
#include "quantized.h"

typedef VECTOR(X) Xv;
typedef Xv Xv_u __attribute__((aligned(sizeof(X))));
typedef Tv Tr_u __attribute__((aligned(sizeof(T))));

// y[i] = FUNCTION(x[i]), by vectors of x converted to type.
#define EACH(type, FUNCTION)                                                        \
    SHARE(n, per_item);                                                             \
    int i = start;                                                                  \
    for (; i + VW <= end; i += VW) {                                                \
        const VECTOR(type) v = CONVERT(*(__global const Xv_u *)(x + i), type);      \
        *(__global Tr_u *)(y + i) = CONVERT(FUNCTION(v), T);                        \
    }                                                                               \
    for (; i < end; ++i) {                                                          \
        const VECTOR(type) v = (VECTOR(type))(type)x[i];                            \
        y[i] = (T)LANE0(FUNCTION(v));                                               \
    }

// The nearest integers, halves away from zero. Larger ones and NaN are clamped to 65536.
inline intv round_away(floatv x) {
    const floatv near = max_v(x < 65536.0f ? x : (floatv)(65536.0f), (floatv)(-65536.0f));
    const intv whole = CONVERT(near, int);
    const floatv rest = near - CONVERT(whole, float);
    return whole + (rest >= 0.5f ? (intv)1 : (rest <= -0.5f ? (intv)-1 : (intv)0));
}

#define SHIFTED(v) clamp_int((v) + zero, low, high)
#define RESCALED(v) clamp_int(rescale((v) - x_zero, by) + zero, low, high)
#define QUANTIZED(v) clamp_int(round_away((v) / scale) + zero, low, high)
#define DEQUANTIZED(v) (CONVERT((v) - zero, float) * scale)

KERNEL void requantize_each(ITEM __global const X *x, __global T *y, int n, int per_item, int multiplier, int left,
                            int right, int x_zero, int zero, int low, int high) {
    const Scale by = {.multiplier = multiplier, .left = left, .right = right};
    EACH(int, RESCALED)
}

// The product is rounded before the offset is added.
inline floatv scaled(intv x, float scale, float offset) {
#pragma OPENCL FP_CONTRACT OFF
    return CONVERT(x, float) * scale + offset;
}

#define SCALED(v) clamp_int(round_away(scaled(v, scale, offset)) + zero, low, high)

KERNEL void scale_each(ITEM __global const X *x, __global T *y, int n, int per_item, float scale, float offset,
                       int zero, int low, int high) {
    EACH(int, SCALED)
}

// The same scale on both sides. zero: the difference of the zero points.
KERNEL void shift_each(ITEM __global const X *x, __global T *y, int n, int per_item, int zero, int low, int high) {
    EACH(int, SHIFTED)
}

#ifdef LITECL_CPU
#include "bytes.h"

// The same scale on both sides, by whole vectors of bytes. first makes x unsigned; last is added, with wrapping, after
// values that would leave the range of y are clamped.
KERNEL void shift_bytes(ITEM __global const uchar *x, __global uchar *y, int n, int per_item, int first, int low, int high,
                        int last) {
    SHARE(n, per_item);
    int i = start;
    for (; i + 4 * VW <= end; i += 4 * VW) {
        const bytesv v = *(__global const bytesv_u *)(x + i) + (uchar)first;
        const bytesv least = v > (uchar)low ? v : (bytesv)(uchar)low;
        *(__global bytesv_u *)(y + i) = (least < (uchar)high ? least : (bytesv)(uchar)high) + (uchar)last;
    }
    for (; i < end; ++i) y[i] = MIN(MAX((int)(uchar)(x[i] + first), low), high) + last;
}
#endif

#ifdef REAL_X
KERNEL void quantize(ITEM __global const X *x, __global T *y, int n, int per_item, float scale, int zero, int low,
                     int high) {
    EACH(float, QUANTIZED)
}
#endif

#ifdef REAL_Y
KERNEL void dequantize(ITEM __global const X *x, __global T *y, int n, int per_item, float scale, int zero) {
    EACH(int, DEQUANTIZED)
}
#endif

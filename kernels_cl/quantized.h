// The integer arithmetic of quantized operators: dot products of bytes and words, and TFLite's requantization.
//
// Bytes are multiplied as unsigned activations by signed weights, four at a time with x86's VNNI. Signed activations
// become unsigned by flipping their highest bit, which adds 128; biases compensate for that.
//
// Macros: T, the type of the activations: char, uchar or, with WORDS, short; OUT, the type of results, if another.
#include "tile.h"
#include <delegate.quantized.integers.Scale>
#include <delegate.quantized.integers.StageRow>
#include <delegate.quantized.integers.WideRow>

typedef VECTOR(T) Tv;
typedef Tv Tv_g AT_ANY(1);
typedef int int_u __attribute__((aligned(1)));
typedef uchar16 uchar16_u __attribute__((aligned(1)));
#ifndef OUT
#define OUT T
#endif
typedef VECTOR(OUT) Outv;
typedef Outv Outv_u __attribute__((aligned(1)));
typedef Outv Outv_g AT_ANY(1);

typedef intv intv_b __attribute__((aligned(1)));

// Loads a vector of packed weights, or of a stage. It is aligned, which a GPU's compiler must know to load it at once.
#ifdef LITECL_GPU
#define LOADI(p) (*(__global const intv *)(p))
#else
#define LOADI(p) (*(__global const intv_u *)(p))
#endif
#define LOADB(p) (*(__global const intv_b *)(p))  // 4 VW bytes at any address

// The bits to flip in a byte to make it unsigned: 128, or none.
#ifdef WORDS
#define FLIP 0
#else
#define FLIP ((uchar)((T)-1 < (T)0 ? 128 : 0))
#endif

#include "x86_dots.h"
#include "arm_dots.h"

// sum + the dot product of the four unsigned bytes of x and the four signed bytes of w, lane by lane.
#if defined(DOT4)
#elif defined(LITECL_DOTS)
#include "dots.h"
inline intv dot4(intv sum, const intv x, const intv w) {
    UNROLL for (int i = 0; i < VW; ++i)
        ((int *)&sum)[i] = add_unsigned_dot(((int *)&sum)[i], ((const int *)&x)[i], ((const int *)&w)[i]);
    return sum;
}
#define DOT4(sum, x, w) dot4(sum, (intv)(x), (intv)(w))
#else
inline intv dot4(intv sum, intv x, intv w) {
    sum += (x & 255) * (w << 24 >> 24);
    sum += (x >> 8 & 255) * (w << 16 >> 24);
    sum += (x >> 16 & 255) * (w << 8 >> 24);
    return sum + (x >> 24 & 255) * (w >> 24);
}
#define DOT4(sum, x, w) dot4(sum, (intv)(x), (intv)(w))
#endif

// sum + the dot product of the two signed words of x and of w, lane by lane.
#if !defined(DOT2)
inline intv dot2(intv sum, intv x, intv w) { return sum + (x << 16 >> 16) * (w << 16 >> 16) + (x >> 16) * (w >> 16); }
#define DOT2(sum, x, w) dot2(sum, (intv)(x), (intv)(w))
#endif

// x m / 2^31, halves rounded up (SaturatingRoundingDoublingHighMul, for m >= 0).
#if VW == 1
#define HALF_VW 1
typedef long longh;
#define AS_LONGH(x) as_long(x)
#define LOW_HALF(x) (x)
#define HIGH_HALF(x) 0  // none
inline intv multiply_high(intv x, intv m) { return (int)(((long)x * m + (1L << 30)) >> 31); }
#else
#if VW == 16
#define HALF_VW 8
#elif VW == 8
#define HALF_VW 4
#else
#define HALF_VW 2
#endif
typedef JOIN(long, HALF_VW) longh;
#define AS_LONGH(x) JOIN(as_long, HALF_VW)(x)
#define LOW_HALF(x) ((x).lo)
#define HIGH_HALF(x) ((x).hi)

#if VW == 4 && defined(__wasm_simd128__)
#define WASM_LANES 1
#include "wasm_lanes.h"
#else
// Products of 32-bit integers as 64 bits, of even lanes and of odd ones. AVX2 multiplies even lanes, so odd ones are
// copied there: a compiler that has shifted them no longer knows how small they are.
inline longh multiply_even(intv x, intv y) { return (AS_LONGH(x) << 32 >> 32) * (AS_LONGH(y) << 32 >> 32); }
#if VW == 8 && defined(__AVX2__)
#define ODD_LANES(x) __builtin_shufflevector(x, x, 1, 1, 3, 3, 5, 5, 7, 7)
inline longh multiply_odd(intv x, intv y) { return multiply_even(ODD_LANES(x), ODD_LANES(y)); }
#else
inline longh multiply_odd(intv x, intv y) { return (AS_LONGH(x) >> 32) * (AS_LONGH(y) >> 32); }
#endif

#ifdef MULTIPLY_HIGH
inline intv multiply_high(intv x, intv m) { return MULTIPLY_HIGH(x, m); }
#else
inline intv multiply_high(intv x, intv m) {
    const longh middle = 1L << 30, even = multiply_even(x, m) + middle, odd = multiply_odd(x, m) + middle;
    return (LANES & 1) != 0 ? AS_INTV(odd << 1) : AS_INTV(even >> 31);
}
#endif
#endif
#endif

// Shifts of each lane by a number of bits of its own, to the right by up to 30; and integers narrowed to results.
#ifdef WASM_LANES
#define NARROWED_OUT narrowed_out
#define SHIFT_LANES_LEFT shift_left_v
#define SHIFT_LANES_RIGHT shift_right_v
#else
#define SHIFT_LANES_LEFT(x, n) ((x) << (n))
#define SHIFT_LANES_RIGHT(x, n) ((x) >> (n))
#define NARROWED_OUT(x) CONVERT(x, OUT)
#endif

// The quotient of a division by a power of two, rounded down, to the nearest, halves away from zero. mask: the power - 1.
inline intv rounded_quotient(const intv quotient, const intv x, const intv mask) {
    const intv most = (mask >> 1) - (x >> 31), rest = x & mask;
    return quotient - ((most - rest) >> 31);  // plus one if the remainder is above a half; nothing can overflow
}

// x / 2^places, halves away from zero (RoundingDivideByPOT).
inline intv divide_by_power_v(intv x, intv places) {
    return rounded_quotient(x >> places, x, AS_INTV((((uintv)1) << AS_UINTV(places)) - 1));
}

// MultiplyByQuantizedMultiplier: x m 2^(left - right - 31), rounded to 32 bits, then once more, halves away from zero.
inline intv requantize(intv x, intv m, intv left, intv right) {
    return divide_by_power_v(multiply_high(x << left, m), right);
}

// The same, with shifts of each lane's own.
#ifdef WASM_LANES
inline intv requantize_lanes(const intv x, const intv m, const intv left, const intv right) {
    const intv y = multiply_high(SHIFT_LANES_LEFT(x, left), m);
    const intv shifted = right > 30 ? y >> 31 : SHIFT_LANES_RIGHT(y, right);
    return rounded_quotient(shifted, y, SHIFT_LANES_LEFT((intv)1, right) - 1);
}
#else
#define requantize_lanes requantize
#endif

inline intv rescale(intv x, const Scale by) { return requantize(x, by.multiplier, by.left, by.right); }

// Multiplies sums by factors in float64 and rounds once: halves away from zero with REAL_FACTORS, halves up with
// FLOORED, where the product is exact. For results that are clamped to 16 bits or less. Wide sums are whole numbers in
// float64, or 64-bit integers on a device without it.
#if defined(REAL_FACTORS) || defined(FLOORED)
#include "float64.h"
#if VW == 1
typedef int inth;
#define CONVERT_H(x, type) ((type)(x))
#else
typedef JOIN(int, HALF_VW) inth;
#if defined(__has_builtin)
#if __has_builtin(__builtin_convertvector)
#define CONVERT_H(x, type) __builtin_convertvector(x, JOIN(type, HALF_VW))
#endif
#endif
#ifndef CONVERT_H
#define CONVERT_H(x, type) JOIN(JOIN(convert_, type), HALF_VW)(x)
#endif
#endif
#ifdef cl_khr_fp64
#define WIDE_TYPE double
typedef double Factor;
#if VW == 1
typedef double wideh;
#define AS_WIDEH(x) as_double(x)
#else
typedef JOIN(double, HALF_VW) wideh;
#define AS_WIDEH(x) JOIN(as_double, HALF_VW)(x)
#endif
typedef wideh wideh_u __attribute__((aligned(8)));
#define LOADD(p) (*(__global const wideh_u *)(p))

inline inth round_half(wideh x) {
    const wideh least = x < -65536.0 ? (wideh)-65536.0 : x, y = least > 65536.0 ? (wideh)65536.0 : least;
#ifdef FLOORED
    const wideh z = y + 0.5, one = 1.0, none = 0.0;
    const inth whole = CONVERT_H(z, int);
    return whole - CONVERT_H(z < CONVERT_H(whole, double) ? one : none, int);
#else
    const wideh nearly = 0.49999999999999994;  // with a half the sum rounds to 1, with anything less to less
    const longh sign = AS_LONGH(x) & LONG_MIN;
    return CONVERT_H(y + AS_WIDEH(AS_LONGH(nearly) | sign), int);
#endif
}

inline inth scale_half(inth x, __global const double *factors) { return round_half(CONVERT_H(x, double) * LOADD(factors)); }

inline intv scale(intv x, __global const double *factors) {
#if VW == 1
    return scale_half(x, factors);
#else
    return (intv)(scale_half(x.lo, factors), scale_half(x.hi, factors + HALF_VW));
#endif
}
#else
#define WIDE_TYPE long
typedef ulong Factor;  // the bits of a float64
typedef longh wideh;

OUT_OF_LINE int round_half(const Real y) {
    const int right = -y.exponent;
    if (y.mantissa == 0 || right > 54) return 0;
    if (right < 36) return y.negative ? -65536 : 65536;
    const ulong tie = 1UL << (right - 1), rest = y.mantissa & (2 * tie - 1);
#ifdef FLOORED
    const int up = rest > tie || (rest == tie && !y.negative);
#else
    const int up = rest >= tie;
#endif
    const int whole = MIN((int)(y.mantissa >> right) + up, 65536);
    return y.negative ? -whole : whole;
}

OUT_OF_LINE intv scale(intv x, __global const ulong *factors) {
    intv y;
    for (int i = 0; i < VW; ++i) ((int *)&y)[i] = round_half(times(real_of_long(((int *)&x)[i]), real_of_bits(factors[i])));
    return y;
}
#endif
#endif

// VW elements at p as integers.
#define LOAD_T(p) CONVERT(*(__global const Tv_g *)(p), int)

// The first `count` elements at p as integers, then zeros.
inline intv load_lanes(__global const T *p, int count) {
    if (count >= VW) return LOAD_T(p);
    intv x = 0;
    FIRST(i, count, VW) ((int *)&x)[i] = p[i];
    return x;
}

inline intv clamp_int(intv x, int low, int high) {
    const intv y = x < low ? (intv)low : x;
    return y > high ? (intv)high : y;
}

// Clamps to the bounds of a result. With SATURATED these are its type's, which narrowing instructions apply.
#if defined(SATURATED) && defined(NARROWS_SUMS) && defined(WASM_LANES)
#define BOUNDED(x, low, high) (x)  // narrowed_out saturates
#elif defined(SATURATED)
#define LEAST_OUT ((OUT)-1 < (OUT)0 ? -(1 << (8 * sizeof(OUT) - 1)) : 0)
#define BOUNDED(x, low, high) clamp_int(x, LEAST_OUT, LEAST_OUT + (1 << 8 * sizeof(OUT)) - 1)
#else
#define BOUNDED(x, low, high) clamp_int(x, low, high)
#endif

// The last step of a sum of products but for its clamp: requantizes it and adds the zero point of the output. stage
// points at bias, multiplier, left and right shift of VW columns, `step` ints apart. With FOLDED no column has a left
// shift; its slot holds the term that rounds the right shift and adds the zero point. With RECTIFIED, in addition,
// results of negative sums are clamped away and all columns have a right shift: rounding twice then equals rounding down
// once, applied to the 64-bit product plus all terms. With REAL_FACTORS a float64 takes the slots of the shifts.
#if defined(RECTIFIED) && !defined(MULTIPLY_HIGH)
inline intv rescale_sum(intv sum, __global const int *stage, int step, int zero) {
#if VW == 1
    const long added = ((long)stage[STAGE_ROW_THIRD * step] << 31) + (1L << 30);
    const int upper = (int)(((long)sum * stage[STAGE_ROW_MULTIPLIER * step] + added) >> 32);
#elif defined(WASM_LANES)
    const intv m = LOADI(stage + STAGE_ROW_MULTIPLIER * step), third = LOADI(stage + STAGE_ROW_THIRD * step);
    const longh first = multiply_first(sum, m) + (1L << 30), last = multiply_last(sum, m) + (1L << 30);
    const longh first_added = WIDENED_LANES(third.lo) << 31, last_added = WIDENED_LANES(third.hi) << 31;
    const intv upper = UPPER_HALVES(first + first_added, last + last_added);
#else
    const intv m = LOADI(stage + STAGE_ROW_MULTIPLIER * step);
    const longh added = AS_LONGH(LOADI(stage + STAGE_ROW_THIRD * step));
    const longh even_added = (added << 32 >> 1) + (1L << 30), odd_added = (added >> 32 << 31) + (1L << 30);
    const longh even = multiply_even(sum, m) + even_added, odd = multiply_odd(sum, m) + odd_added;
    const intv upper = (LANES & 1) != 0 ? AS_INTV(odd) : AS_INTV(even >> 32);
#endif
    return SHIFT_LANES_RIGHT(upper, LOADI(stage + STAGE_ROW_RIGHT * step) - 1);
}
#elif defined(FOLDED) || defined(RECTIFIED)
inline intv rescale_sum(intv sum, __global const int *stage, int step, int zero) {
    const intv right = LOADI(stage + STAGE_ROW_RIGHT * step);
    const intv y = multiply_high(sum, LOADI(stage + STAGE_ROW_MULTIPLIER * step));
    const intv rounded = y + LOADI(stage + STAGE_ROW_THIRD * step) + (right > 0 ? y >> 31 : (intv)0);
    return SHIFT_LANES_RIGHT(rounded, right);
}
#else
inline intv rescale_sum(intv sum, __global const int *stage, int step, int zero) {
#ifdef REAL_FACTORS
    const intv y = scale(sum, (__global const Factor *)(stage + STAGE_ROW_THIRD * step));
#else
    const intv y = requantize_lanes(sum, LOADI(stage + STAGE_ROW_MULTIPLIER * step),
                                    LOADI(stage + STAGE_ROW_THIRD * step), LOADI(stage + STAGE_ROW_RIGHT * step));
#endif
    return y + zero;
}
#endif

// The same, clamped.
inline intv finish_sum(intv sum, __global const int *stage, int step, int zero, int low, int high) {
    return BOUNDED(rescale_sum(sum, stage, step, zero), low, high);
}

// The last step of 64-bit sums: multiplies by a factor and clamps. stage points at the bias and the factor of VW
// columns, all in float64.
#ifdef WIDE_SUMS
inline intv finish_wide(const wideh sums[2], __global const int *stage, int low, int high) {
    __global const Factor *biases = (__global const Factor *)stage + WIDE_ROW_BIAS * VW;
    __global const Factor *factors = (__global const Factor *)stage + WIDE_ROW_FACTOR * VW;
#ifdef cl_khr_fp64
    const inth first = round_half((sums[0] + LOADD(biases)) * LOADD(factors));
#if VW == 1
    return clamp_int(first, low, high);
#else
    const inth second = round_half((sums[1] + LOADD(biases + HALF_VW)) * LOADD(factors + HALF_VW));
    return clamp_int((intv)(first, second), low, high);
#endif
#else
    intv y;
    for (int i = 0; i < VW; ++i) {
        const Real sum = plus(real_of_long(((const long *)sums)[i]), real_of_bits(biases[i]));
        ((int *)&y)[i] = round_half(times(sum, real_of_bits(factors[i])));
    }
    return clamp_int(y, low, high);
#endif
}
#endif

#if defined(HAS_MASKS) && defined(LITECL_NATIVE) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define MASKS_BYTES 1
#endif

// Writes the first `columns` lanes of y, if any.
inline void store_lanes(__global OUT *p, const Outv y, const int columns) {
#ifdef MASKS_BYTES
    typedef char Bytes __attribute__((vector_size(VW)));
    if (sizeof(OUT) == 1) {
        __builtin_ia32_storedquqi128_mask((Bytes *)(size_t)p, __builtin_convertvector(y, Bytes), FIRST_LANES(columns));
        return;
    }
#endif
    if (columns >= VW) {
        *(__global Outv_g *)p = y;
        return;
    }
    if (columns <= 0) return;
    STORE_PART(OUT, p, y, columns)
}

// Four vectors of rescaled sums as bytes, clamped to [low, high]: AVX2 packs halves of vectors side by side.
#if VW == 8 && defined(__AVX2__) && defined(LITECL_NATIVE) && !defined(MASKS_BYTES)
#define PACKS_BYTES 1
typedef ulong eight_bytes __attribute__((aligned(1)));
typedef int ints_of_256 __attribute__((vector_size(32)));
typedef short words_of_256 __attribute__((ext_vector_type(16)));

inline words_of_256 packed_words(const intv x, const intv y, const int low, const int high) {
    const words_of_256 words = __builtin_astype(
        __builtin_ia32_packssdw256(__builtin_astype(x, ints_of_256), __builtin_astype(y, ints_of_256)), words_of_256);
#ifdef SATURATED
    return words;
#else
    return __builtin_elementwise_min(__builtin_elementwise_max(words, (words_of_256)(short)low),
                                     (words_of_256)(short)high);
#endif
}

inline ulong4 packed_bytes(const intv y[4], const int low, const int high) {
    const words_of_256 first = packed_words(y[0], y[1], low, high), second = packed_words(y[2], y[3], low, high);
    const intv halves = __builtin_astype((OUT)-1 < (OUT)0 ? __builtin_ia32_packsswb256(first, second)
                                                          : __builtin_ia32_packuswb256(first, second),
                                         intv);
    return __builtin_astype(__builtin_shufflevector(halves, halves, 0, 4, 1, 5, 2, 6, 3, 7), ulong4);
}
#endif

// The prelude of every kernel: vectors of the device's width, loads and stores, elementary functions, activations.
//
// Some OpenCL runtimes for CPUs call their builtins instead of inlining them, and spill every vector register around
// each call. So what a hot loop needs is written out here: x * w + c contracts to one fused multiply-add, ternaries
// replace min, max and clamp, and the elementary functions are polynomials on whole vectors.
//
// Macro: VW, floats in a vector: 16 with AVX-512, 8 with AVX2, 4 or 1 elsewhere. For every function f_v of vectors
// there is a scalar f_s, which takes the first lane of f_v.

#ifndef VW
#define VW 1
#endif

#pragma OPENCL FP_CONTRACT ON

// Without it LLVM splits 512-bit vectors for processors on which it prefers 256 bits. On the processor's own back end
// all functions have it: LLVM sets itself up anew, for half a millisecond, for every width that functions of a file
// have.
#if defined(__AVX512F__) || defined(LITECL_NATIVE) && defined(__x86_64__)
#define WIDE __attribute__((min_vector_width(512)))
#else
#define WIDE
#endif

// A kernel is written KERNEL void name(ITEM arguments...) and gets its index in dimension d from ITEM_INDEX(d). It is
// built in several ways: as a __kernel that is launched, or, with LITECL_REGION, as a function that the kernel of a
// whole region calls for one work-item after another (region.cl), with the index as an argument. With LITECL_GUARDED it
// is a function that a __kernel calls if a flag is set (delegate/plan/region_program.py).
//
// On a CPU a work-item is a group of its own. A runtime for CPUs may compile a kernel several times, once for each way
// of launching it, but functions that are not inlined only once. On a GPU all are inlined, as most compilers do anyway:
// where a kernel has barriers, Mesa's llvmpipe loses the values that lie around the call of a function.
#ifdef LITECL_CPU
#ifdef LITECL_NATIVE
#define INLINED WIDE
#else
#define INLINED
#endif
#define OUT_OF_LINE __attribute__((noinline)) static
// A function that several files of a region have, each the same by that name: the linker keeps one.
#if defined(LITECL_REGION) && defined(LITECL_NATIVE)
#define SHARED WIDE __attribute__((noinline, weak, visibility("hidden")))
#else
#define SHARED OUT_OF_LINE
#endif
#define LOCAL_ITEM 0
#define LOCAL_ITEMS 1
#else
#define INLINED __attribute__((always_inline))
#define OUT_OF_LINE INLINED static
#define SHARED OUT_OF_LINE
#define LOCAL_ITEM get_local_id(0)
#define LOCAL_ITEMS get_local_size(0)
#endif

#ifdef LITECL_REGION
#define KERNEL __attribute__((always_inline)) inline WIDE
#ifdef LITECL_USERS
#include "users.h"
#else
#define ITEM const int item_0, const int item_1, const int item_2,
#endif
#define ITEM_INDEX(d) item_##d
#include "region.h"
#else
#if defined(LITECL_GUARDED)
#define KERNEL INLINED static WIDE
#elif defined(LITECL_CPU)
#define KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1))) WIDE
#elif defined(LITECL_SUBGROUP)
#define KERNEL __kernel __attribute__((intel_reqd_sub_group_size(LITECL_SUBGROUP)))
#else
#define KERNEL __kernel
#endif
#define ITEM
#define ITEM_INDEX(d) get_global_id(d)
#endif

#if defined(LITECL_REGION) || !defined(LITECL_CPU)
#undef inline  // some drivers define it
#define inline INLINED static __inline__  // C99's inline functions are lost when files are linked
#endif

#define UNROLL _Pragma("unroll")

// Loops over the first n of `most` elements in registers, all or every step-th. On a GPU the number of iterations is
// constant, because registers that a variable indexes lie in memory.
#ifdef LITECL_GPU
#define FIRST_BY(step, i, n, most) UNROLL for (int i = 0; i < (most); i += (step)) if (i < (n))
#else
#define FIRST_BY(step, i, n, most) for (int i = 0; i < (n); i += (step))
#endif
#define FIRST(i, n, most) FIRST_BY(1, i, n, most)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if VW == 1
typedef float floatv;
typedef int intv;
typedef uint uintv;
typedef float floatv_u;
typedef int intv_u;
#define VECTOR(type) type
#define LANE0(x) (x)
#define AS_INTV(x) as_int(x)
#define AS_UINTV(x) as_uint(x)
#define AS_FLOATV(x) as_float(x)
#else
typedef JOIN(float, VW) floatv;
typedef JOIN(int, VW) intv;
typedef JOIN(uint, VW) uintv;
typedef floatv floatv_u __attribute__((aligned(4)));  // at any address of a float
typedef intv intv_u __attribute__((aligned(4)));
#define VECTOR(type) JOIN(type, VW)
#define LANE0(x) ((x).s0)
#define AS_INTV(x) JOIN(as_int, VW)(x)
#define AS_UINTV(x) JOIN(as_uint, VW)(x)
#define AS_FLOATV(x) JOIN(as_float, VW)(x)
#endif

#if VW == 16
#define LANES ((intv)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#elif VW == 8
#define LANES ((intv)(0, 1, 2, 3, 4, 5, 6, 7))
#elif VW == 4
#define LANES ((intv)(0, 1, 2, 3))
#else
#define LANES 0
#endif

// A vector converted to another element type, as C converts each element.
#if VW == 1
#define CONVERT(x, type) ((type)(x))
#elif defined(__has_builtin)
#if __has_builtin(__builtin_convertvector)
#define CONVERT(x, type) __builtin_convertvector(x, VECTOR(type))
#endif
#endif
#ifndef CONVERT
#define CONVERT(x, type) JOIN(convert_, VECTOR(type))(x)
#endif

// Makes a work-item's earlier writes visible to work-items of other groups that learn of them afterwards.
#if defined(__NV_CL_C_VERSION) || defined(__NVPTX__)
#define DEVICE_FENCE __asm__ volatile("membar.gl;" : : : "memory")
#elif defined(__AMDGCN__)
#define DEVICE_FENCE __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent")
#else
#define DEVICE_FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

// The alignment of vectors of elements of `size` bytes in global memory: an element's or, on a GPU with ALIGNED, their
// own, so that they are moved at once.
#if defined(LITECL_GPU) && defined(ALIGNED)
#define AT_ANY(size)
#else
#define AT_ANY(size) __attribute__((aligned(size)))
#endif

// VW floats at a __global pointer.
typedef floatv floatv_g AT_ANY(4);
#define LOAD(p) (*(__global const floatv_g *)(p))
#define STORE(p, x) (*(__global floatv_g *)(p) = (x))

// load_<name> and store_<name> move VW elements of a type at a __global pointer with an element's alignment. GPUs move
// only aligned vectors at once, and their compilers split a vector that may not be aligned.
#ifdef LITECL_GPU
#define IS_ALIGNED(type, p) (((size_t)(p) & (sizeof(VECTOR(type)) - 1)) == 0)
#define VECTORS_OF(type, name)                                                         \
    inline VECTOR(type) load_##name(__global const type *p) {                          \
        if (IS_ALIGNED(type, p)) return *(__global const VECTOR(type) *)p;             \
        VECTOR(type) x;                                                                \
        UNROLL for (int i = 0; i < VW; ++i) ((type *)&x)[i] = p[i];                    \
        return x;                                                                      \
    }                                                                                  \
    inline void store_##name(__global type *p, VECTOR(type) x) {                       \
        if (IS_ALIGNED(type, p)) *(__global VECTOR(type) *)p = x;                      \
        else UNROLL for (int i = 0; i < VW; ++i) p[i] = ((type *)&x)[i];               \
    }
#else
#define VECTORS_OF(type, name)                                                                          \
    typedef VECTOR(type) name##_u __attribute__((aligned(sizeof(type))));                               \
    inline VECTOR(type) load_##name(__global const type *p) { return *(__global const name##_u *)p; }   \
    inline void store_##name(__global type *p, VECTOR(type) x) { *(__global name##_u *)p = x; }
#endif

// Four halves as floats, from an address that is a multiple of 8 bytes: loaded at once, unlike by some compilers'
// vload_half4 in global memory.
#ifdef LITECL_GPU
inline float4 load_halves(__global const half *p) {
    const ushort4 bits = *(__global const ushort4 *)p;
    return vload_half4(0, (__private const half *)&bits);
}
#endif

// A work-item's share of n items dealt out in runs of per_item: [start, end).
#define SHARE(n, per_item)                        \
    const int start = ITEM_INDEX(0) * (per_item); \
    const int end = MIN(start + (per_item), (n))

// A work-item's pixels from start to end, and their channels from first_channel to end_channel: on a CPU all channels,
// on a GPU one vector, so that adjacent work-items take adjacent vectors.
#ifdef LITECL_GPU
#define SHARE_PIXELS(n, per_item, channels)                                              \
    const int start = ITEM_INDEX(1) * (per_item), end = MIN(start + (per_item), (n));    \
    const int first_channel = ITEM_INDEX(0) * VW, end_channel = MIN(first_channel + VW, (channels))
#else
#define SHARE_PIXELS(n, per_item, channels) \
    SHARE(n, per_item);                     \
    const int first_channel = 0, end_channel = (channels)
#endif

// Loops over several arrays together, row by row (delegate/kit/loops.py). table: rank, dims[rank], then the
// strides[rank] of each array. SEEK_ROWS starts at row number `line`, and declares the row's offsets in each array;
// NEXT_ROW moves on to the next row, unless this one is_last. A GPU computes offsets anew from the row's number,
// because indexed registers lie in memory. A CPU adds: the next left_ rows are steps_ apart, then an outer dimension's
// index_ changes. With STRAIGHT there is a single row.
#define MOST_DIMS 16

#ifdef STRAIGHT
#define SEEK_ROWS(table, arrays, line) int offsets[arrays]; UNROLL for (int a = 0; a < (arrays); ++a) offsets[a] = 0
#define NEXT_ROW(table, arrays, is_last)
#elif defined(LITECL_GPU)
inline void seek_row(__global const int *table, int arrays, int line, int *offsets) {
    const int rank = table[0];
    UNROLL for (int a = 0; a < arrays; ++a) offsets[a] = 0;
    for (int d = rank; d > 0; --d) {
        const int outer = line / table[d], at = line - outer * table[d];
        UNROLL for (int a = 0; a < arrays; ++a) offsets[a] += at * table[d + (a + 1) * rank];
        line = outer;
    }
}

#define SEEK_ROWS(table, arrays, line) int offsets[arrays], line_ = (line); seek_row(table, arrays, line_, offsets)
#define NEXT_ROW(table, arrays, is_last) if (!(is_last)) seek_row(table, arrays, ++line_, offsets)
#else
inline int seek_row(__global const int *table, int arrays, int line, int *index, int *offsets) {
    const int rank = table[0];
    UNROLL for (int a = 0; a < arrays; ++a) offsets[a] = 0;
    for (int d = rank; d > 0; --d) {
        const int outer = line / table[d];
        index[d - 1] = line - outer * table[d];
        UNROLL for (int a = 0; a < arrays; ++a) offsets[a] += index[d - 1] * table[d + (a + 1) * rank];
        line = outer;
    }
    return rank > 0 ? table[rank] - index[rank - 1] : 1;
}

// Moves from the last row of the innermost dimension to the next row; returns the number of rows from there.
inline int next_row(__global const int *table, int arrays, int *index, int *offsets) {
    const int rank = table[0];
    if (rank > 0) index[rank - 1] = table[rank] - 1;
    for (int d = rank; d > 0; --d) {
        const bool again = ++index[d - 1] == table[d];
        const int steps = again ? 1 - table[d] : 1;
        UNROLL for (int a = 0; a < arrays; ++a) offsets[a] += steps * table[d + (a + 1) * rank];
        if (!again) break;
        index[d - 1] = 0;
    }
    return table[rank];
}

#define SEEK_ROWS(table, arrays, line)                                                                   \
    int index_[MOST_DIMS], offsets[arrays], steps_[arrays];                                         \
    int left_ = seek_row(table, arrays, line, index_, offsets);                                     \
    UNROLL for (int a = 0; a < (arrays); ++a) steps_[a] = (table)[(a + 2) * (table)[0]]

#define NEXT_ROW(table, arrays, is_last)                                    \
    if (--left_ > 0) {                                                      \
        UNROLL for (int a = 0; a < (arrays); ++a) offsets[a] += steps_[a];  \
    } else                                                                  \
        left_ = next_row(table, arrays, index_, offsets)
#endif

// A window's lines and positions in all images (delegate/matmul/geometry.py).
#define LINES_OF(g) ((g)->images * (g)->out_height)
#define PLACES_OF(g) (LINES_OF(g) * (g)->out_width)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))

// Reduces the lanes of x, a vector of type, by OP, one half with the other.
#define FOLD(type, x, OP, result) JOIN(FOLD_, VW)(type, x, OP, result)
#define FOLD_16(type, x, OP, result) { const JOIN(type, 8) by8_ = OP((x).lo, (x).hi); FOLD_8(type, by8_, OP, result) }
#define FOLD_8(type, x, OP, result) { const JOIN(type, 4) by4_ = OP((x).lo, (x).hi); FOLD_4(type, by4_, OP, result) }
#define FOLD_4(type, x, OP, result) { const JOIN(type, 2) by2_ = OP((x).lo, (x).hi); result = OP(by2_.s0, by2_.s1); }
#define FOLD_1(type, x, OP, result) result = (x);

// A vector of an array that repeats within a row, from element `at` on (periodic in delegate/kit/strided.py). step: 0
// if a single element repeats, -n if n elements do, which divide a vector.
#ifdef LITECL_CPU
#define REPEATED(type, name, p, at, step)                                                                  \
    VECTOR(type) name = (p)[0];                                                                            \
    if ((step) < 0) for (int lane_ = 0; lane_ < VW; ++lane_) ((type *)&name)[lane_] = (p)[((at) + lane_) & (-(step) - 1)];
#define LANE(type, x, i) (((const type *)&(x))[(i) & (VW - 1)])
#else
#define REPEATED(type, name, p, at, step) const VECTOR(type) name = (p)[0];
#define LANE(type, x, i) LANE0(x)
#endif

// With masks, AVX-512 loads and stores the first count lanes, and touches no other memory, which may be read-only.
#if defined(__AVX512F__) && VW == 16
#define HAS_MASKS
#define FIRST_LANES(count) ((ushort)((count) < VW ? (1u << MAX(count, 0)) - 1 : 0xffff))

inline floatv load_first(__global const float *p, int count, floatv rest) {
    return __builtin_ia32_loadups512_mask((const float *)(size_t)p, rest, FIRST_LANES(count));
}

inline void store_first(__global float *p, floatv x, int count) {
    __builtin_ia32_storeups512_mask((float *)(size_t)p, x, FIRST_LANES(count));
}
#endif

// A vector within a row or at its end: the first count lanes from p, the others `rest`. room: elements that may be read
// at p, count or more.
inline floatv load_part(__global const float *p, int count, int room, float rest) {
    floatv x = rest;
#ifdef HAS_MASKS
    return load_first(p, count, x);
#else
    if (room >= VW) return LANES < (intv)count ? LOAD(p) : x;
    FIRST(i, count, VW) ((float *)&x)[i] = p[i];
    return x;
#endif
}

// Stores the first count lanes at p. room: elements at p that the work-item has yet to write; if there are enough, a
// whole vector is stored.
inline void store_part(__global float *p, floatv x, int count, int room) {
    if (room >= VW) {
        STORE(p, x);
        return;
    }
#ifdef HAS_MASKS
    store_first(p, x, count);
#else
    FIRST(i, count, VW) p[i] = ((float *)&x)[i];
#endif
}

inline floatv min_v(floatv a, floatv b) { return a < b ? a : b; }
inline floatv max_v(floatv a, floatv b) { return a > b ? a : b; }

// NaN passes through, as it does in TFLite's clamps.
inline floatv clamp_v(floatv x, floatv low, floatv high) {
    const floatv y = x < low ? low : x;
    return y > high ? high : y;
}

// Rounded to a whole number: down, up, to the nearest (halves to even).
#if defined(__has_builtin) && VW > 1
#if __has_builtin(__builtin_elementwise_floor) && __has_builtin(__builtin_elementwise_rint)
#define floor_v(x) __builtin_elementwise_floor(x)
#define ceil_v(x) __builtin_elementwise_ceil(x)
#define round_v(x) __builtin_elementwise_rint(x)  // roundeven is not in every system's library
#endif
#endif
#ifndef floor_v
#define floor_v(x) floor(x)
#define ceil_v(x) ceil(x)
#define round_v(x) rint(x)
#endif

inline floatv abs_v(floatv x) { return AS_FLOATV(AS_INTV(x) & 0x7fffffff); }

// The magnitude of x with the sign of y.
inline floatv copysign_v(floatv x, floatv y) {
    return AS_FLOATV((AS_INTV(x) & 0x7fffffff) | (AS_INTV(y) & (int)0x80000000));
}

// x = n ln 2 + r with |r| <= ln 2 / 2: returns r, writes n + EXP_SHIFT, a sum that is rounded to the nearest integer.
#define EXP_SHIFT 12582912.0f  // 1.5 * 2^23
#define EXPONENT(shifted) (AS_INTV(shifted) - 0x4b400000)
inline floatv reduce_exp_v(floatv x, floatv *shifted) {
    *shifted = x * 1.44269504f + EXP_SHIFT;
    const floatv n = *shifted - EXP_SHIFT;
    return x - n * 0.693359375f + n * 2.12194440e-4f;
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, relative error of e^r 3e-9.
inline floatv exp_tail_v(floatv r) {
    floatv q = r * 1.381446475e-3f + 8.368780622e-3f;
    q = q * r + 4.166839426e-2f;
    q = q * r + 1.666652011e-1f;
    return q * r + 4.999999341e-1f;
}

// e^x: subnormal results, 0 and infinity included. AVX-512 multiplies by 2^n in one instruction, whatever the result.
// Elsewhere 2^n is applied in two halves, each of which is a normal number, and results that vanish are not computed: a
// product that underflows can cost 100 times as much as one that does not.
inline floatv exp_v(floatv x) {
    floatv shifted;
#ifdef HAS_MASKS
    const floatv r = reduce_exp_v(clamp_v(x, -104.0f, 89.0f), &shifted);
    const floatv p = exp_tail_v(r) * (r * r) + r + 1.0f;
    return __builtin_ia32_scalefps512_mask(p, shifted - EXP_SHIFT, p, (ushort)-1, 4);
#else
    const intv vanishes = x < -104.0f;
    const floatv r = reduce_exp_v(vanishes ? (floatv)(0.0f) : (x > 89.0f ? (floatv)(89.0f) : x), &shifted);
    const intv n = EXPONENT(shifted), half_n = n >> 1;
    const floatv p = exp_tail_v(r) * (r * r) + r + 1.0f;
    const floatv y = p * AS_FLOATV((half_n + 127) << 23) * AS_FLOATV((n - half_n + 127) << 23);
    return vanishes ? (floatv)(0.0f) : y;
#endif
}

// e^x - 1 for x <= 0, without cancellation near 0: 2^n (e^r - 1) + (2^n - 1). Below -18 it is -1.
inline floatv expm1_v(floatv x) {
    floatv shifted;
    const floatv r = reduce_exp_v(x < -18.0f ? (floatv)(-18.0f) : x, &shifted);
    const floatv scale = AS_FLOATV((EXPONENT(shifted) + 127) << 23);
    return (exp_tail_v(r) * (r * r) + r) * scale + (scale - 1.0f);
}

// Natural logarithm: x = 2^e m with m in [2/3, 4/3), and a polynomial of log(m) - r + r^2 / 2, r = m - 1.
inline floatv log_v(floatv x) {
    const intv tiny = x < 1.17549435e-38f;
    const intv bits = AS_INTV(tiny ? x * 8388608.0f : x) - 0x3f2aaaab;
    const floatv r = AS_FLOATV((bits & 0x007fffff) + 0x3f2aaaab) - 1.0f;
    const floatv e = CONVERT((bits >> 23) - (tiny ? (intv)23 : (intv)0), float);
    floatv q = r * -1.289160091e-1f + 1.398446719e-1f;
    q = q * r - 1.218427781e-1f;
    q = q * r + 1.400586253e-1f;
    q = q * r - 1.668048642e-1f;
    q = q * r + 2.001040633e-1f;
    q = q * r - 2.499979768e-1f;
    q = q * r + 3.333321598e-1f;
    const floatv square = r * r;
    const floatv tail = q * r * square - 0.5f * square - e * 2.12194440e-4f;
    const floatv y = e * 0.693359375f + (r + tail);
    const floatv edge = x == 0.0f ? (floatv)(-INFINITY) : (floatv)(NAN);
    return x > 0.0f ? (x == (floatv)(INFINITY) ? x : y) : edge;
}

// 1 / sqrt(x). AVX-512 computes 14 bits of it, and a series in e = 1 - x r^2 adds the rest, in half the time of a root
// and a division. For 0, infinity, NaN and negative numbers the instruction's result is final.
inline floatv rsqrt_v(floatv x) {
#if defined(__AVX512F__) && VW == 16
    const floatv r = __builtin_ia32_rsqrt14ps512_mask(x, x, (ushort)-1);
    const floatv e = 1.0f - x * r * r;
    return x > 0.0f && x < (floatv)(INFINITY) ? r * e * (e * 0.375f + 0.5f) + r : r;
#else
    return 1.0f / sqrt(x);
#endif
}

// 1 / (1 + e^-x), from e^-|x|, which never overflows.
inline floatv sigmoid_v(floatv x) {
    const floatv e = exp_v(-abs_v(x));
    return (x < 0.0f ? e : (floatv)(1.0f)) / (1.0f + e);
}

// With a = |x| and e = (exp(-2 a) - 1) / 2, which is a polynomial of a near 0: tanh(a) = -e / (1 + e). The quotient
// only enters a sum, e / (1 + e) = e - e (e / (1 + e)), which halves its error. Relative error 2.4e-7.
inline floatv tanh_v(floatv x) {
    const floatv a = AS_FLOATV(AS_INTV(x) | (int)0x80000000);
    const floatv b = a < -9.1f ? (floatv)(-9.1f) : a;  // beyond it is 1, and NaN passes
    const floatv shifted = b * 2.88539008f + 12583039.0f;  // 2 a = n ln 2 + 2 r; the lowest bits are n + 127
    const floatv r = b - (shifted - 12583039.0f) * 0.34657359f;
    floatv q = r * 4.442406818e-2f + 1.338642985e-1f;
    q = q * r + 3.333376050e-1f;
    q = q * r + 6.666617393e-1f;
    q = q * r + 9.999999403e-1f;
    const floatv scale = AS_FLOATV(AS_INTV(shifted) << 23);
    const floatv e = (q * (r * r) + r) * scale + (scale * 0.5f - 0.5f);
    return copysign_v(e - e * (e / (e + 1.0f)), x);
}

// An odd polynomial for |x| < 0.9, 1 - e^p(|x|) beyond, where p fits log(erfc).
inline floatv erf_v(floatv x) {
    const floatv a = abs_v(x);
    const floatv z = x * x;
    floatv q = z * 8.538839266e-5f - 8.181927308e-4f;
    q = q * z + 5.204436028e-3f;
    q = q * z - 2.686075281e-2f;
    q = q * z + 1.128371972e-1f;
    q = q * z - 3.761263531e-1f;
    const floatv near = (q * z + 1.283791671e-1f) * x + x;
    const floatv b = clamp_v(a, 0.0f, 4.0f);
    floatv p = b * 1.982207064e-4f - 3.065499815e-3f;
    p = p * b + 2.231524802e-2f;
    p = p * b - 1.041137455e-1f;
    p = p * b - 6.369760132e-1f;
    p = p * b - 1.127797281f;
    p = p * b - 1.664390812e-4f;
    return a < 0.9f ? near : copysign_v(1.0f - exp_v(p), x);
}

inline floatv gelu_v(floatv x) { return 0.5f * x * (1.0f + erf_v(x * 0.707106781f)); }

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), by 1 + tanh(u) = 2 sigmoid(2 u).
inline floatv gelu_approximate_v(floatv x) { return x * sigmoid_v(x * (x * x * 0.0713548162f + 1.59576912f)); }

inline floatv swish_v(floatv x) { return x * sigmoid_v(x); }
inline floatv hard_swish_v(floatv x) { return x * clamp_v(x + 3.0f, 0.0f, 6.0f) * 0.166666667f; }
inline floatv elu_v(floatv x) { return x < 0.0f ? expm1_v(x) : x; }
inline floatv leaky_relu_v(floatv x, floatv slope) { return x > 0.0f ? x : x * slope; }  // 0 * infinity is NaN

inline float sum_lanes(floatv x) {
    float sum;
    FOLD(float, x, ADD, sum)
    return sum;
}

inline int sum_ints(intv x) {
    int sum;
    FOLD(int, x, ADD, sum)
    return sum;
}

inline float max_lanes(floatv x) {
    float most;
    FOLD(float, x, MAX, most)
    return most;
}

inline float exp_s(float x) { return LANE0(exp_v((floatv)(x))); }
inline float log_s(float x) { return LANE0(log_v((floatv)(x))); }
inline float sigmoid_s(float x) { return LANE0(sigmoid_v((floatv)(x))); }
inline float tanh_s(float x) { return LANE0(tanh_v((floatv)(x))); }
inline float erf_s(float x) { return LANE0(erf_v((floatv)(x))); }

// The functions that a kernel can apply to its result before it is stored: -D ACTIVATION=ACTIVATION_<name> selects one.
// low and high are run-time floats: the bounds of CLAMP, or the slope of LEAKY_RELU (in low); otherwise unused.
#define ACTIVATION_CLAMP(x, low, high) clamp_v(x, low, high)
#define ACTIVATION_TANH(x, low, high) tanh_v(x)
#define ACTIVATION_LOGISTIC(x, low, high) sigmoid_v(x)
#define ACTIVATION_SWISH(x, low, high) swish_v(x)
#define ACTIVATION_HARD_SWISH(x, low, high) hard_swish_v(x)
#define ACTIVATION_GELU(x, low, high) gelu_v(x)
#define ACTIVATION_GELU_APPROXIMATE(x, low, high) gelu_approximate_v(x)
#define ACTIVATION_ELU(x, low, high) elu_v(x)
#define ACTIVATION_LEAKY_RELU(x, low, high) leaky_relu_v(x, low)

#ifndef ACTIVATION
#define ACTIVATION ACTIVATION_CLAMP
#endif
#define ACTIVATION_S(x, low, high) LANE0(ACTIVATION((floatv)(x), low, high))

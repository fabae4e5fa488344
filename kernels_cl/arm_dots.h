// Dot products by instructions of ARM: DOT4 and DOT2 of quantized.h, or DOT_ALL of patches.h.
//
// Newer processors multiply unsigned bytes by signed ones. Others multiply only signed bytes (PART4), so x is taken as
// x - 128 by flipping its highest bits. The missing term, 128 times the sum of w's bytes, is the same for every x, so a
// loop can add it up separately (REST4).
#if VW == 4 && defined(__ARM_NEON)
typedef signed char bytes_of_intv __attribute__((vector_size(16)));
#define AS_BYTES(x) __builtin_astype((intv)(x), bytes_of_intv)
#define NEON_DOT(name, sum, x, w) \
    __builtin_astype(__builtin_neon_##name##_s32(AS_BYTES(sum), AS_BYTES(x), AS_BYTES(w), 34), intv)  // 34: of int32
#define LEAST_BYTES ((intv)(int)0x80808080)

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define DOT4(sum, x, w) NEON_DOT(vusdotq, sum, x, w)
#define DOTS_BY_LANE 1  // one operand may be a lane of a vector, at no cost
#elif defined(__ARM_FEATURE_DOTPROD)
#define PART4(sum, x, w) NEON_DOT(vdotq, sum, w, x)
#define DOTS_BY_LANE 1
#define REST4(rest, w) NEON_DOT(vdotq, rest, LEAST_BYTES, w)  // to be subtracted
#else
// Products of bytes as words, and sums of neighbours, twice.
#define EIGHT(v, i) __builtin_shufflevector(v, v, i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7)
#define WORDS_OF(x, w, i) __builtin_neon_vmull_v(EIGHT(x, i), EIGHT(w, i), 33)  // 33: of int16
#define PAIRS_OF(words) __builtin_astype(__builtin_neon_vpaddlq_v(words, 34), intv)
INLINE intv dot_signed(const intv sum, const intv x, const intv w) {
    const bytes_of_intv a = AS_BYTES(x), b = AS_BYTES(w);
    const intv low = PAIRS_OF(WORDS_OF(a, b, 0)), high = PAIRS_OF(WORDS_OF(a, b, 8));
#ifdef __aarch64__
    return sum + __builtin_astype(__builtin_neon_vpaddq_v(AS_BYTES(low), AS_BYTES(high), 34), intv);
#else
    return sum + __builtin_shufflevector(low, high, 0, 2, 4, 6) + __builtin_shufflevector(low, high, 1, 3, 5, 7);
#endif
}
#define PART4(sum, x, w) dot_signed(sum, (intv)(x), (intv)(w))
#define REST4(rest, w) dot_signed(rest, LEAST_BYTES, (intv)(w))  // to be subtracted
#endif

#ifdef PART4
#define DOT4(sum, x, w) (PART4(sum, (intv)(x) ^ LEAST_BYTES, w) - REST4(0, w))
#endif
#endif

// Helium adds up the products of two vectors of signed bytes or words, but not lane by lane: the compiler makes one
// instruction of these conversions.
#if VW == 4 && defined(__ARM_FEATURE_MVE)
#define LEAST_BYTES ((intv)(int)0x80808080)
#ifdef WORDS
typedef short8 parts_of_intv;
typedef int8 products_of_intv;
#else
typedef char16 parts_of_intv;
typedef int16 products_of_intv;
#endif
// Doubles the product, and rounds its upper half.
inline intv rounded_upper_half(const intv x, const intv m) {
    intv y;
    __asm__("vqrdmulh.s32 %q0, %q1, %q2" : "=w"(y) : "w"(x), "w"(m));
    return y;
}
#define MULTIPLY_HIGH rounded_upper_half
#define AS_PRODUCTS(x) __builtin_convertvector(__builtin_astype(x, parts_of_intv), products_of_intv)
#define DOT_ALL(sum, x, w) ((sum) + __builtin_reduce_add(AS_PRODUCTS(x) * AS_PRODUCTS(w)))
#define ADD_ALL(sum, w) ((sum) + __builtin_reduce_add(AS_PRODUCTS(w)))
inline intv dot_signed(intv sum, const intv x, const intv w) {
    sum += (x << 24 >> 24) * (w << 24 >> 24) + (x << 16 >> 24) * (w << 16 >> 24);
    return sum + (x << 8 >> 24) * (w << 8 >> 24) + (x >> 24) * (w >> 24);
}
#define PART4(sum, x, w) dot_signed(sum, (intv)(x), (intv)(w))
#define REST4(rest, w) dot_signed(rest, LEAST_BYTES, (intv)(w))  // to be subtracted
#endif

// Microcontrollers multiply two pairs of words, which they make of every other byte of a register.
#if VW == 1 && defined(__ARM_FEATURE_SIMD32) && !defined(__ARM_NEON)
#define FEW_REGISTERS 1
#define ODD(x) (as_int(as_uint(x) >> 8 | as_uint(x) << 24))
inline int even_bytes(const int x) { return __builtin_arm_uxtb16(x); }
inline int odd_bytes(const int x) { return __builtin_arm_uxtb16(ODD(x)); }
inline int dot2(const int sum, const int x, const int w) { return __builtin_arm_smlad(x, w, sum); }
inline int dot_widened(const int sum, const int even, const int odd, const int w) {
    return dot2(dot2(sum, even, __builtin_arm_sxtb16(w)), odd, __builtin_arm_sxtb16(ODD(w)));
}
#define DOT4(sum, x, w) dot_widened(sum, even_bytes(x), odd_bytes(x), w)
#define DOT2(sum, x, w) dot2(sum, x, w)
#endif

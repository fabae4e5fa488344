// Dot products by instructions of ARM: DOT4 of quantized.h.
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

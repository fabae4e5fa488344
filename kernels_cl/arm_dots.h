// Dot products by instructions of ARM: DOT4 of quantized.h.
//
// Newer processors multiply unsigned bytes by signed ones. Others multiply signed bytes alone: of x less 128. What is
// then missing, 128 times the sum of w's bytes, is the same for all x that w multiplies: a loop can add it up apart from
// them (PART4, REST4).
#if VW == 4 && (defined(__ARM_FEATURE_MATMUL_INT8) || defined(__ARM_FEATURE_DOTPROD))
typedef signed char bytes_of_intv __attribute__((vector_size(16)));
#define AS_BYTES(x) __builtin_astype((intv)(x), bytes_of_intv)
#define NEON_DOT(name, sum, x, w) \
    __builtin_astype(__builtin_neon_##name##_s32(AS_BYTES(sum), AS_BYTES(x), AS_BYTES(w), 34), intv)

#ifdef __ARM_FEATURE_MATMUL_INT8
#define DOT4(sum, x, w) NEON_DOT(vusdotq, sum, x, w)
#else
#define LEAST_BYTES ((intv)(int)0x80808080)
#define PART4(sum, x, w) NEON_DOT(vdotq, sum, (intv)(x) ^ LEAST_BYTES, w)
#define REST4(rest, w) NEON_DOT(vdotq, rest, LEAST_BYTES, w)  // to be subtracted
#define DOT4(sum, x, w) (PART4(sum, x, w) - REST4(0, w))
#endif
#endif

// Dot products by x86 instructions, if there are any for vectors of VW ints: DOT4 and DOT2 of quantized.h.
// WebAssembly multiplies pairs of words as SSE2 does. Its relaxed product of bytes is VNNI's on such a processor, which
// model.mjs tests at the start (delegate/export/templates).
//
// VNNI multiplies four bytes at a time; without it pairs of bytes are widened to words. Its builtin functions took
// vectors of ints up to clang 21.
#if VW == 16 && defined(__AVX512VNNI__)
#define VNNI(name) __builtin_ia32_##name##512
#elif VW == 8 && (defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__))
#define VNNI(name) __builtin_ia32_##name##256
#elif VW == 4 && (defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__))
#define VNNI(name) __builtin_ia32_##name##128
#elif VW == 16 && defined(__AVX512BW__)
#define MULTIPLY_PAIRS __builtin_ia32_pmaddwd512
#elif VW == 8 && defined(__AVX2__)
#define MULTIPLY_PAIRS __builtin_ia32_pmaddwd256
#elif VW == 4 && defined(__SSE2__)
#define MULTIPLY_PAIRS __builtin_ia32_pmaddwd128
#elif VW == 4 && defined(__wasm_relaxed_simd__)
#define RELAXED_DOT __builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4
#elif VW == 4 && defined(__wasm_simd128__)
#define MULTIPLY_PAIRS __builtin_wasm_dot_s_i32x4_i16x8
#endif

#if defined(VNNI) || defined(MULTIPLY_PAIRS) || defined(RELAXED_DOT)
typedef uchar activations_of_intv __attribute__((vector_size(4 * VW)));
typedef char weights_of_intv __attribute__((vector_size(4 * VW)));
typedef short words_of_intv __attribute__((vector_size(4 * VW)));
#define AS_WORDS(x) __builtin_astype(x, words_of_intv)
#endif

#if defined(VNNI)
#if __clang_major__ >= 22
#define DOT4(sum, x, w) \
    VNNI(vpdpbusd)(sum, __builtin_astype(x, activations_of_intv), __builtin_astype(w, weights_of_intv))
#define DOT2(sum, x, w) VNNI(vpdpwssd)(sum, AS_WORDS(x), AS_WORDS(w))
#else
#define DOT4(sum, x, w) VNNI(vpdpbusd)(sum, x, w)
#define DOT2(sum, x, w) VNNI(vpdpwssd)(sum, x, w)
#endif
#elif defined(RELAXED_DOT)
typedef signed char bytes_of_intv __attribute__((vector_size(16)));
typedef int sums_of_intv __attribute__((vector_size(16)));
#define AS_BYTES(x) __builtin_astype((intv)(x), bytes_of_intv)
#define DOT4(sum, x, w) \
    __builtin_astype(RELAXED_DOT(AS_BYTES(w), AS_BYTES(x), __builtin_astype((intv)(sum), sums_of_intv)), intv)
#define DOT2(sum, x, w) ((sum) + __builtin_wasm_dot_s_i32x4_i16x8(AS_WORDS((intv)(x)), AS_WORDS((intv)(w))))
#elif defined(MULTIPLY_PAIRS)
#define DOT2(sum, x, w) ((sum) + MULTIPLY_PAIRS(AS_WORDS((intv)(x)), AS_WORDS((intv)(w))))
inline intv dot4(const intv sum, const intv x, const intv w) {
    const words_of_intv even = AS_WORDS(w << 8) >> 8, odd = AS_WORDS(w) >> 8;
    const words_of_intv unsigned_odd = AS_WORDS(AS_INTV(AS_UINTV(x) >> 8) & 0x00ff00ff);
    return sum + MULTIPLY_PAIRS(AS_WORDS(x & 0x00ff00ff), even) + MULTIPLY_PAIRS(unsigned_odd, odd);
}
#define DOT4(sum, x, w) dot4(sum, (intv)(x), (intv)(w))
// The same of signed bytes, where no weight is -128: w with the sign of x, times the magnitude of x, in sums of pairs
// that fit in words.
#if VW == 8
#define SIGNED_OF(w, x) __builtin_ia32_psignb256(AS_SIGNED(w), AS_SIGNED(x))
#define ADD_PAIRS(x, w) __builtin_ia32_pmaddubsw256(x, w)
#elif VW == 4 && defined(__SSSE3__)
#define SIGNED_OF(w, x) __builtin_ia32_psignb128(AS_SIGNED(w), AS_SIGNED(x))
#define ADD_PAIRS(x, w) __builtin_ia32_pmaddubsw128(x, w)
#endif
#ifdef SIGNED_OF
#define AS_SIGNED(x) __builtin_astype(x, weights_of_intv)
inline intv dot_signed(const intv sum, const intv x, const intv w) {
    return sum + MULTIPLY_PAIRS(ADD_PAIRS(SIGNED_OF(x, x), SIGNED_OF(w, x)), AS_WORDS((intv)0x00010001));
}
#define SIGNED_DOT4(sum, x, w) dot_signed(sum, (intv)(x), (intv)(w))
#endif
#endif

// Looks up all bytes of a vector at once in a table of 256 bytes, by instructions of x86 and ARM that permute bytes.
// Without one, TABLE_PARTS is not defined.
//
// An instruction selects from 128 entries (AVX-512 VBMI), from 64 (ARM), or from 16 (SSSE3, AVX2, AVX-512 BW).
#if VW == 16 && defined(__AVX512VBMI__)
#define CHOOSE_128(low, x, high) AS_BYTESV(__builtin_ia32_vpermi2varqi512(AS_SIGNED(low), AS_SIGNED(x), AS_SIGNED(high)))
#elif VW == 16 && defined(__AVX512BW__)
#define CHOOSE_16(entries, x) AS_BYTESV(__builtin_ia32_pshufb512(AS_SIGNED(entries), AS_SIGNED(x)))
#elif VW == 8 && defined(__AVX2__)
#define CHOOSE_16(entries, x) AS_BYTESV(__builtin_ia32_pshufb256(AS_SIGNED(entries), AS_SIGNED(x)))
#elif VW == 4 && defined(__SSSE3__)
#define CHOOSE_16(entries, x) AS_BYTESV(__builtin_ia32_pshufb128(AS_SIGNED(entries), AS_SIGNED(x)))
#elif VW == 4 && defined(__ARM_NEON) && defined(__aarch64__)
#define CHOOSE_64(others, p, x) AS_BYTESV(__builtin_neon_vqtbx4q_v(AS_SIGNED(others), AS_SIGNED(p[0]), AS_SIGNED(p[1]), \
                                                                   AS_SIGNED(p[2]), AS_SIGNED(p[3]), AS_SIGNED(x), 48))
#endif

#if defined(CHOOSE_128) || defined(CHOOSE_64) || defined(CHOOSE_16)
#include "bytes.h"
#ifdef __ARM_NEON
typedef signed char signed_bytesv __attribute__((vector_size(4 * VW)));
#else
typedef char signed_bytesv __attribute__((vector_size(4 * VW)));
#endif
#define AS_BYTESV(x) __builtin_astype(x, bytesv)
#define AS_SIGNED(x) __builtin_astype(x, signed_bytesv)
#endif

#ifdef CHOOSE_16
#define TABLE_PARTS 16
typedef uchar16 entries_u __attribute__((aligned(1)));
#define ENTRIES 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#if VW == 16
#define REPEAT_ENTRIES(v) __builtin_shufflevector(v, v, ENTRIES, ENTRIES, ENTRIES, ENTRIES)
#elif VW == 8
#define REPEAT_ENTRIES(v) __builtin_shufflevector(v, v, ENTRIES, ENTRIES)
#else
#define REPEAT_ENTRIES(v) (v)
#endif

// An index with its highest bit set selects 0. The index is reduced by 16 from part to part, and the selected entries
// are combined by exclusive or. An index below 128 gets entries of all parts up to x / 16; a larger one too, but only
// of the last 8 of them, as its highest bit is set before. So each part holds the difference from the parts that are
// combined with it.
inline void load_table(bytesv parts[TABLE_PARTS], __global const uchar *table) {
    UNROLL for (int p = 0; p < TABLE_PARTS; ++p) {
        const uchar16 entries = *(__global const entries_u *)(table + 16 * p);
        parts[p] = AS_BYTESV(REPEAT_ENTRIES(entries));
    }
    UNROLL for (int p = TABLE_PARTS - 1; p > 0; --p) {
        parts[p] ^= parts[p - 1];
        if (p >= 8) parts[p] ^= parts[p - 8];
        if (p >= 9) parts[p] ^= parts[p - 9];
    }
}

// Subtracts 16 from signed bytes, saturating, so that the highest bit stays set for x < 128.
inline bytesv sixteen_less(const bytesv x) {
#if __has_builtin(__builtin_elementwise_sub_sat)
    return AS_BYTESV(__builtin_elementwise_sub_sat(AS_SIGNED(x), AS_SIGNED((bytesv)(uchar)16)));
#else
    const bytesv least = 128 + 16;
    return ((x ^ (uchar)128) < (uchar)16 ? least : x) - (uchar)16;
#endif
}

inline bytesv look_up_bytes(const bytesv parts[TABLE_PARTS], bytesv x) {
    bytesv y = CHOOSE_16(parts[0], x);
    UNROLL for (int p = 1; p < TABLE_PARTS; ++p) {
        x = p <= 8 ? x - (uchar)16 : sixteen_less(x);
        y ^= CHOOSE_16(parts[p], x);
    }
    return y;
}
#elif defined(CHOOSE_128) || defined(CHOOSE_64)
#define TABLE_PARTS (64 / VW)
inline void load_table(bytesv parts[TABLE_PARTS], __global const uchar *table) {
    UNROLL for (int p = 0; p < TABLE_PARTS; ++p) parts[p] = *(__global const bytesv_u *)(table + p * sizeof(bytesv));
}

inline bytesv look_up_bytes(const bytesv parts[TABLE_PARTS], const bytesv x) {
#ifdef CHOOSE_128
    const bytesv is_high = AS_BYTESV(AS_SIGNED(x) < 0);
    return (CHOOSE_128(parts[0], x, parts[1]) & ~is_high) | (CHOOSE_128(parts[2], x, parts[3]) & is_high);
#else
    bytesv y = x;
    UNROLL for (int p = 0; p < TABLE_PARTS; p += 4) y = CHOOSE_64(y, (parts + p), x - (uchar)(16 * p));
    return y;
#endif
}
#endif

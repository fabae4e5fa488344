// Bytes of four vectors of VW ints, a multiple of 4, transposed within blocks of 16 bytes, in which x86, NEON and
// WebAssembly interleave and narrow elements.
typedef uchar BlockBytes __attribute__((vector_size(4 * VW)));
typedef ushort BlockWords __attribute__((vector_size(4 * VW)));
typedef int BlockInts __attribute__((vector_size(4 * VW)));
#define AS_BLOCK_BYTES(x) __builtin_astype(x, BlockBytes)
#define AS_BLOCK_WORDS(x) __builtin_astype(x, BlockWords)

// IN_BLOCKS: the numbers(i) of elements for all blocks, each of n elements, from element i of the first.
#if VW == 16
#define IN_BLOCKS(numbers, i, n) numbers(i), numbers(i + n), numbers(i + 2 * n), numbers(i + 3 * n)
#elif VW == 8
#define IN_BLOCKS(numbers, i, n) numbers(i), numbers(i + n)
#else
#define IN_BLOCKS(numbers, i, n) numbers(i)
#endif
#define FOUR_PAIRS(i, n) i, i + n, i + 1, i + 1 + n, i + 2, i + 2 + n, i + 3, i + 3 + n
#define WORD_PAIRS(i) FOUR_PAIRS(i, 2 * VW)
#define BYTE_PAIRS(i) FOUR_PAIRS(i, 4 * VW), FOUR_PAIRS(i + 4, 4 * VW)
#define FOUR_EVEN(i) i, i + 2, i + 4, i + 6
#define EVEN_WORDS(i) FOUR_EVEN(i), FOUR_EVEN(i + 2 * VW)
#define EVEN_BYTES(i) FOUR_EVEN(i), FOUR_EVEN(i + 8), FOUR_EVEN(i + 4 * VW), FOUR_EVEN(i + 4 * VW + 8)

// Half a block of x interleaved with that of y, from element i on.
#define INTERLEAVED_BYTES(x, y, i) \
    AS_BLOCK_WORDS(__builtin_shufflevector(AS_BLOCK_BYTES(x), AS_BLOCK_BYTES(y), IN_BLOCKS(BYTE_PAIRS, i, 16)))
#define INTERLEAVED_WORDS(x, y, i) AS_INTV(__builtin_shufflevector(x, y, IN_BLOCKS(WORD_PAIRS, i, 8)))

// Byte 4 q + j of block i of from[k] becomes byte k of lane 4 i + j of to[q].
INLINE void transpose_blocks(intv to[4], const intv from[4]) {
    const BlockWords a = INTERLEAVED_BYTES(from[0], from[1], 0), b = INTERLEAVED_BYTES(from[0], from[1], 8);
    const BlockWords c = INTERLEAVED_BYTES(from[2], from[3], 0), d = INTERLEAVED_BYTES(from[2], from[3], 8);
    to[0] = INTERLEAVED_WORDS(a, c, 0), to[1] = INTERLEAVED_WORDS(a, c, 4);
    to[2] = INTERLEAVED_WORDS(b, d, 0), to[3] = INTERLEAVED_WORDS(b, d, 4);
}

// Four vectors of results narrowed to bytes: lane 4 i + j of y[q] becomes byte 4 q + j of block i.
#if defined(WASM_LANES)
INLINE intv narrowed_blocks(const intv y[4]) {
    return __builtin_astype(narrowed_bytes(narrowed_words(y[0], y[1]), narrowed_words(y[2], y[3])), intv);
}
#else
#if VW == 16 && defined(__AVX512BW__)
#define PACK(name) __builtin_ia32_##name##512
#elif VW == 8 && defined(__AVX2__)
#define PACK(name) __builtin_ia32_##name##256
#elif VW == 4 && defined(__SSE2__)
#define PACK(name) __builtin_ia32_##name##128
#endif
#ifdef PACK
#define NARROWED_WORDS(x, y) PACK(packssdw)(__builtin_astype(x, BlockInts), __builtin_astype(y, BlockInts))
#define NARROWED_BYTES(x, y) ((OUT)-1 < (OUT)0 ? AS_INTV(PACK(packsswb)(x, y)) : AS_INTV(PACK(packuswb)(x, y)))
#else
#define NARROWED_WORDS(x, y) __builtin_shufflevector(AS_BLOCK_WORDS(x), AS_BLOCK_WORDS(y), IN_BLOCKS(EVEN_WORDS, 0, 8))
#define NARROWED_BYTES(x, y) \
    AS_INTV(__builtin_shufflevector(AS_BLOCK_BYTES(x), AS_BLOCK_BYTES(y), IN_BLOCKS(EVEN_BYTES, 0, 16)))
#endif
INLINE intv narrowed_blocks(const intv y[4]) {
    return NARROWED_BYTES(NARROWED_WORDS(y[0], y[1]), NARROWED_WORDS(y[2], y[3]));
}
#endif

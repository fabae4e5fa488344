// Products and shifts of ints that WebAssembly has for vectors of VW = 4, for quantized.h.
//
// It multiplies the first or the last two lanes as 64 bits, not the even or odd ones, and shifts all lanes by one number
// of bits: a shift of each lane by its own, which compilers would take apart, is a product with a power of two. Shifts
// of signed 64-bit integers to the right are slow on x86; upper halves are shuffled out instead.
// clang knows that instruction of a product of two extended vectors only if it doesn't extend one outside of a loop.
#define WASM_PRODUCT(instruction, x, y)                                                                      \
    longh product_;                                                                                          \
    __asm__("local.get %1\n\tlocal.get %2\n\t" instruction "\n\tlocal.set %0" : "=r"(product_) : "r"(x), "r"(y)); \
    return product_;
inline longh multiply_first(const intv x, const intv y) { WASM_PRODUCT("i64x2.extmul_low_i32x4_s", x, y) }
inline longh multiply_last(const intv x, const intv y) { WASM_PRODUCT("i64x2.extmul_high_i32x4_s", x, y) }
#define WIDENED_LANES(half) __builtin_convertvector(half, longh)
#define UPPER_HALVES(first, last) __builtin_shufflevector(AS_INTV(first), AS_INTV(last), 1, 3, 5, 7)

typedef signed char bytes16 __attribute__((vector_size(16)));
typedef short words8 __attribute__((vector_size(16)));
typedef int ints4 __attribute__((vector_size(16)));

// x m / 2^31, halves rounded up.
inline intv multiply_high(const intv x, const intv m) {
    const longh middle = 1L << 30;
    return UPPER_HALVES((multiply_first(x, m) + middle) << 1, (multiply_last(x, m) + middle) << 1);
}

// 1 << n, n from 0 to 31: the byte that has the bit is looked up.
inline intv power_of_two(const intv n) {
    const bytes16 bits = {1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0};
    const bytes16 starts = {0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24};
    const bytes16 b = __builtin_astype(n, bytes16);
    const bytes16 places = __builtin_shufflevector(b, b, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12) - starts;
    return __builtin_astype(__builtin_wasm_swizzle_i8x16(bits, places), intv);
}

inline intv shift_left_v(const intv x, const intv n) { return x * power_of_two(n); }

// x >> n, n from 0 to 30.
inline intv shift_right_v(const intv x, const intv n) {
    const intv power = power_of_two(30 - n);
    return UPPER_HALVES(multiply_first(x, power) << 2, multiply_last(x, power) << 2);
}

#define IS_SIGNED_OUT ((OUT)-1 < (OUT)0)

inline words8 narrowed_words(const intv x, const intv y) {
    return __builtin_wasm_narrow_s_i16x8_i32x4(__builtin_astype(x, ints4), __builtin_astype(y, ints4));
}

inline bytes16 narrowed_bytes(const words8 x, const words8 y) {
    return IS_SIGNED_OUT ? __builtin_wasm_narrow_s_i8x16_i16x8(x, y)
                         : __builtin_astype(__builtin_wasm_narrow_u_i8x16_i16x8(x, y), bytes16);
}

// Integers as elements of a result, to whose bounds the instructions that narrow them saturate.
inline Outv narrowed_out(const intv x) {
    const words8 words = narrowed_words(x, x);
    const bytes16 bytes = narrowed_bytes(words, words);
    if (sizeof(OUT) == 1) return CONVERT(__builtin_shufflevector(bytes, bytes, 0, 1, 2, 3), OUT);
    return sizeof(OUT) == 2 && IS_SIGNED_OUT ? CONVERT(__builtin_shufflevector(words, words, 0, 1, 2, 3), OUT)
                                             : CONVERT(x, OUT);
}

// The 4 x 4 bytes of a vector, transposed.
inline bytes16 transposed(const bytes16 x) {
    const bytes16 order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#ifdef __wasm_relaxed_simd__
    return __builtin_wasm_relaxed_swizzle_i8x16(x, order);
#else
    return __builtin_wasm_swizzle_i8x16(x, order);
#endif
}

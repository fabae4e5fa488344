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
#define UPPER_HALVES(first, last) __builtin_shufflevector(AS_INTV(first), AS_INTV(last), 1, 3, 5, 7)

// x m / 2^31, halves rounded up.
inline intv multiply_high(const intv x, const intv m) {
    const longh middle = 1L << 30;
    return UPPER_HALVES((multiply_first(x, m) + middle) << 1, (multiply_last(x, m) + middle) << 1);
}

// 1 << n, n from 0 to 31: the byte that has the bit is looked up.
inline intv power_of_two(const intv n) {
    typedef signed char Bytes __attribute__((vector_size(16)));
    const Bytes bits = {1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0};
    const Bytes starts = {0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24, 0, 8, 16, 24};
    const Bytes b = __builtin_astype(n, Bytes);
    const Bytes places = __builtin_shufflevector(b, b, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12) - starts;
    return __builtin_astype(__builtin_wasm_swizzle_i8x16(bits, places), intv);
}

inline intv shift_left_v(const intv x, const intv n) { return x * power_of_two(n); }

// x >> n, n from 0 to 31. The power for 0, which the product would take as negative, is not used.
inline intv shift_right_v(const intv x, const intv n) {
    const intv power = power_of_two(31 - n);
    const intv shifted = UPPER_HALVES(multiply_first(x, power) << 1, multiply_last(x, power) << 1);
    return n == 0 ? x : shifted;
}

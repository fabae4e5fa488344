// Dot products of bytes on GPUs. Macro: LITECL_DOTS, if an instruction was found for it (delegate/opencl/probes).

// add_dot: sum + the dot product of the four signed bytes of x and those of w; add_unsigned_dot: of unsigned bytes of
// x.
#ifndef DOT_FUNCTION
#define DOT_FUNCTION __attribute__((always_inline)) static int
#if !defined(LITECL_DOTS)
DOT_FUNCTION add_dot(const int sum, const int x, const int w) {
    const char4 a = as_char4(x), b = as_char4(w);
    return sum + a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3;
}
DOT_FUNCTION add_unsigned_dot(const int sum, const int x, const int w) {
    const uchar4 a = as_uchar4(x);
    const char4 b = as_char4(w);
    return sum + a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3;
}
#elif defined(__NV_CL_C_VERSION) || defined(__NVPTX__)
DOT_FUNCTION add_dot(const int sum, const int x, const int w) {
    int y;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(w), "r"(sum));
    return y;
}
DOT_FUNCTION add_unsigned_dot(const int sum, const int x, const int w) {
    int y;
    __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(w), "r"(sum));
    return y;
}
#elif defined(__GFX11__) || defined(__GFX12__)
DOT_FUNCTION add_dot(const int sum, const int x, const int w) {
    return __builtin_amdgcn_sudot4(true, x, true, w, sum, false);
}
DOT_FUNCTION add_unsigned_dot(const int sum, const int x, const int w) {
    return __builtin_amdgcn_sudot4(false, x, true, w, sum, false);
}
#elif defined(__AMDGCN__)
DOT_FUNCTION add_dot(const int sum, const int x, const int w) { return __builtin_amdgcn_sdot4(x, w, sum, false); }
DOT_FUNCTION add_unsigned_dot(const int sum, const int x, const int w) {  // as signed bytes, less 128 each
    return add_dot(sum + (add_dot(0, 0x01010101, w) << 7), x ^ (int)0x80808080, w);
}
#elif defined(cl_khr_integer_dot_product)
// Intel's headers declare them from OpenCL C 2.0 on only.
int __attribute__((overloadable, const)) dot_4x8packed_ss_int(uint x, uint w);
int __attribute__((overloadable, const)) dot_4x8packed_us_int(uint x, uint w);
DOT_FUNCTION add_dot(const int sum, const int x, const int w) {
    return sum + dot_4x8packed_ss_int(as_uint(x), as_uint(w));
}
DOT_FUNCTION add_unsigned_dot(const int sum, const int x, const int w) {
    return sum + dot_4x8packed_us_int(as_uint(x), as_uint(w));
}
#else
#error "no dot products of bytes"
#endif
#endif

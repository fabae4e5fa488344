// Dot products of bytes on GPUs. Macro: LITECL_DOTS, if an instruction was found for it (delegate/opencl/capabilities.py).

// sum + the dot product of the four signed bytes of x and those of w.
#if !defined(LITECL_DOTS)
__attribute__((always_inline)) static int add_dot(const int sum, const int x, const int w) {
    const char4 a = as_char4(x), b = as_char4(w);
    return sum + a.s0 * b.s0 + a.s1 * b.s1 + a.s2 * b.s2 + a.s3 * b.s3;
}
#elif defined(__NV_CL_C_VERSION) || defined(__NVPTX__)
__attribute__((always_inline)) static int add_dot(const int sum, const int x, const int w) {
    int y;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(w), "r"(sum));
    return y;
}
#elif defined(__GFX11__) || defined(__GFX12__)
__attribute__((always_inline)) static int add_dot(const int sum, const int x, const int w) {
    return __builtin_amdgcn_sudot4(true, x, true, w, sum, false);
}
#elif defined(__AMDGCN__)
__attribute__((always_inline)) static int add_dot(const int sum, const int x, const int w) { return __builtin_amdgcn_sdot4(x, w, sum, false); }
#elif defined(cl_khr_integer_dot_product)
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
__attribute__((always_inline)) static int add_dot(const int sum, const int x, const int w) {
    return sum + dot_4x8packed_ss_int(as_uint(x), as_uint(w));
}
#else
#error "no dot products of bytes"
#endif

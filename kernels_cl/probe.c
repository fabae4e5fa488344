// A program that runs one instruction of each set that a compiler may use for its target, and exits with 0. It is
// killed on a processor, or emulator, that claims instructions it lacks (delegate/native/probe.py). For Linux.
#define RUN(instruction) __asm__ volatile(instruction);
#if defined(__x86_64__)
#define EXIT __asm__ volatile("syscall" : : "a"(60), "D"(0));
#elif defined(__aarch64__)
#define EXIT __asm__ volatile("mov x8, #93\n\tmov x0, #0\n\tsvc #0");
#endif

void _start(void) {
#ifdef __SSE3__
    RUN("addsubps %xmm0, %xmm0")
#endif
#ifdef __SSSE3__
    RUN("pabsb %xmm0, %xmm0")
#endif
#ifdef __SSE4_1__
    RUN("pminsd %xmm0, %xmm0")
#endif
#ifdef __SSE4_2__
    RUN("pcmpgtq %xmm0, %xmm0")
#endif
#ifdef __CRC32__
    RUN("crc32l %eax, %eax")
#endif
#ifdef __POPCNT__
    RUN("popcntl %eax, %eax")
#endif
#ifdef __MOVBE__
    RUN("movbel -8(%rsp), %eax")
#endif
#ifdef __AVX__
    RUN("vaddps %ymm0, %ymm0, %ymm0")
#endif
#ifdef __F16C__
    RUN("vcvtph2ps %xmm0, %ymm0")
#endif
#ifdef __FMA__
    RUN("vfmadd231ps %ymm0, %ymm0, %ymm0")
#endif
#ifdef __AVX2__
    RUN("vpaddd %ymm0, %ymm0, %ymm0")
#endif
#ifdef __BMI__
    RUN("andnl %eax, %eax, %eax")
#endif
#ifdef __BMI2__
    RUN("shlxl %eax, %eax, %eax")
#endif
#ifdef __GFNI__
    RUN("gf2p8mulb %xmm0, %xmm0")
#endif
#ifdef __AVX512F__
    RUN("vpternlogd $1, %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512CD__
    RUN("vplzcntd %zmm0, %zmm0")
#endif
#ifdef __AVX512BW__
    RUN("vpaddb %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512DQ__
    RUN("vpmullq %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512VL__
    RUN("vpternlogd $1, %ymm0, %ymm0, %ymm0")
#endif
#ifdef __AVX512IFMA__
    RUN("vpmadd52luq %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512VBMI__
    RUN("vpermb %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512VBMI2__
    RUN("vpshldd $1, %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512VNNI__
    RUN("vpdpbusd %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVX512BITALG__
    RUN("vpopcntb %zmm0, %zmm0")
#endif
#ifdef __AVX512VPOPCNTDQ__
    RUN("vpopcntd %zmm0, %zmm0")
#endif
#ifdef __AVX512BF16__
    RUN("vcvtneps2bf16 %zmm0, %ymm0")
#endif
#ifdef __AVX512FP16__
    RUN("vaddph %zmm0, %zmm0, %zmm0")
#endif
#ifdef __AVXVNNI__
    RUN("{vex} vpdpbusd %ymm0, %ymm0, %ymm0")
#endif
#ifdef __AVXVNNIINT8__
    RUN("vpdpbssd %ymm0, %ymm0, %ymm0")
#endif
#ifdef __AVXIFMA__
    RUN("{vex} vpmadd52luq %ymm0, %ymm0, %ymm0")
#endif
#ifdef __AVXNECONVERT__
    RUN("{vex} vcvtneps2bf16 %ymm0, %xmm0")
#endif
#ifdef __ARM_FEATURE_CRC32
    RUN("crc32b w1, w1, w1")
#endif
#ifdef __ARM_FEATURE_ATOMICS
    RUN("mov x1, sp\n\tldadd wzr, wzr, [x1]")
#endif
#ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
    RUN("fadd v0.8h, v0.8h, v0.8h")
#endif
#ifdef __ARM_FEATURE_QRDMX
    RUN("sqrdmlah v0.4s, v0.4s, v0.4s")
#endif
#ifdef __ARM_FEATURE_DOTPROD
    RUN("sdot v0.4s, v0.16b, v0.16b")
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
    RUN("smmla v0.4s, v0.16b, v0.16b")
#endif
#ifdef __ARM_FEATURE_BF16
    RUN("bfdot v0.4s, v0.8h, v0.8h")
#endif
#ifdef __ARM_FEATURE_SVE
    RUN("cntb x1")
#endif
#ifdef __ARM_FEATURE_SVE2
    RUN("sqabs z0.b, p0/m, z0.b")
#endif
    EXIT
}

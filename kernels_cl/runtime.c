// Functions that compilers call where a processor lacks an instruction. They usually come with a compiler's library,
// which may not exist where a region runs: halves, 64-bit numbers on 32-bit ARM, and large stack frames on Windows.
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong64;
typedef long long long64;

typedef union {
    float number;
    uint bits;
} Single;
typedef union {
    double number;
    ulong64 bits;
} Double;

#define HALF_TO_SINGLE 0x77800000U  // 2^112, by which exponents differ
#define SINGLE_INFINITY 0x7f800000U

static float widened(const ushort half) {
    Single x = {.bits = (half & 0x7fffU) << 13}, scale = {.bits = HALF_TO_SINGLE};
    if ((half & 0x7c00) == 0x7c00) x.bits |= SINGLE_INFINITY;  // and NaN
    else x.number *= scale.number;
    x.bits |= (half & 0x8000U) << 16;
    return x.number;
}

// A number between two halves is rounded to the even one.
static ushort narrowed(const float single) {
    Single x = {.number = single};
    const uint sign = x.bits >> 16 & 0x8000;
    x.bits &= 0x7fffffff;
    if (x.bits > SINGLE_INFINITY) return (ushort)(sign | 0x7e00);
    if (x.bits >= 0x47800000) return (ushort)(sign | 0x7c00);  // from 65536 on
    if (x.bits >= 0x38800000) return (ushort)(sign | ((x.bits + 0xfff + (x.bits >> 13 & 1) - 0x38000000) >> 13));
    x.number += 0.5f;  // whose last bit is that of the smallest half
    return (ushort)(sign | (x.bits - 0x3f000000));
}

#if defined(__arm__)
#define BASE __attribute__((pcs("aapcs")))  // floats in general registers, whatever other functions do
BASE float __aeabi_h2f(ushort x) { return widened(x); }
BASE float __gnu_h2f_ieee(ushort x) { return widened(x); }
BASE ushort __aeabi_f2h(float x) { return narrowed(x); }
BASE ushort __gnu_f2h_ieee(float x) { return narrowed(x); }
#else
typedef union {
    _Float16 number;
    ushort bits;
} Half;
float __extendhfsf2(_Float16 x) { return widened(((Half){.number = x}).bits); }
_Float16 __truncsfhf2(float x) { return ((Half){.bits = narrowed(x)}).number; }
#endif

#if defined(__arm__)
typedef struct {
    ulong64 quotient, rest;
} Divided;

__attribute__((used)) static void divide(ulong64 x, const ulong64 by, Divided *divided) {
    ulong64 quotient = 0;
    if (by && x >= by) {
        const int most = __builtin_clzll(by) - __builtin_clzll(x);
        for (int bit = most; bit >= 0; --bit)
            if (x >= by << bit) {
                x -= by << bit;
                quotient |= 1ULL << bit;
            }
    }
    divided->quotient = quotient;
    divided->rest = x;
}

__attribute__((used)) static void divide_signed(const long64 x, const long64 by, Divided *divided) {
    divide(x < 0 ? -(ulong64)x : (ulong64)x, by < 0 ? -(ulong64)by : (ulong64)by, divided);
    if ((x < 0) != (by < 0)) divided->quotient = -divided->quotient;
    if (x < 0) divided->rest = -divided->rest;
}

// The quotient is returned in r0 and r1, the rest in r2 and r3.
#define DIVIDES(name, function)                                                                             \
    __attribute__((naked)) void name(void) {                                                                \
        __asm__("push {r7, lr}\n sub sp, sp, #24\n add r7, sp, #8\n str r7, [sp]\n bl " function "\n"       \
                "ldrd r0, r1, [sp, #8]\n ldrd r2, r3, [sp, #16]\n add sp, sp, #24\n pop {r7, pc}");         \
    }
DIVIDES(__aeabi_uldivmod, "divide")
DIVIDES(__aeabi_ldivmod, "divide_signed")

#ifndef __ARM_FEATURE_IDIV
static ulong64 both(const Divided divided) { return divided.rest << 32 | (uint)divided.quotient; }
ulong64 __aeabi_uidivmod(const uint x, const uint by) {
    Divided divided;
    divide(x, by, &divided);
    return both(divided);
}
ulong64 __aeabi_idivmod(const int x, const int by) {
    Divided divided;
    divide_signed(x, by, &divided);
    return both(divided);
}
uint __aeabi_uidiv(const uint x, const uint by) { return (uint)__aeabi_uidivmod(x, by); }
int __aeabi_idiv(const int x, const int by) { return (int)__aeabi_idivmod(x, by); }
#endif

#define UPPER 4294967296.0
// A double has 53 bits: the last one stands for all that do not fit, so that a float is rounded once.
static double rounded_to_odd(const ulong64 x) {
    const ulong64 kept = x >> 53 ? (x & ~0x7ffULL) | (x & 0x7ff ? 0x800 : 0) : x;
    return (double)(uint)(kept >> 32) * UPPER + (double)(uint)kept;
}
BASE float __aeabi_ul2f(ulong64 x) { return (float)rounded_to_odd(x); }
BASE float __aeabi_l2f(long64 x) { return x < 0 ? -__aeabi_ul2f(-(ulong64)x) : __aeabi_ul2f((ulong64)x); }
BASE double __aeabi_ul2d(ulong64 x) { return (double)(uint)(x >> 32) * UPPER + (double)(uint)x; }
BASE double __aeabi_l2d(long64 x) { return (double)(int)(x >> 32) * UPPER + (double)(uint)x; }

// Rounds towards 0; too large numbers become the largest, NaN 0.
BASE ulong64 __aeabi_d2ulz(double x) {
    const Double bits = {.number = x};
    const int exponent = (int)(bits.bits >> 52 & 0x7ff) - 1075;
    const ulong64 digits = (bits.bits & 0xfffffffffffffULL) | 0x10000000000000ULL;
    if (!(x >= 1)) return 0;
    if (exponent > 11) return ~0ULL;
    return exponent >= 0 ? digits << exponent : digits >> -exponent;
}
BASE long64 __aeabi_d2lz(double x) {
    const ulong64 most = ~0ULL >> 1, size = __aeabi_d2ulz(x < 0 ? -x : x);
    if (x < 0) return size > most ? (long64)(most + 1) : -(long64)size;
    return (long64)(size > most ? most : size);
}
BASE ulong64 __aeabi_f2ulz(float x) { return __aeabi_d2ulz(x); }
BASE long64 __aeabi_f2lz(float x) { return __aeabi_d2lz(x); }
#endif

#if defined(_WIN32)
// Windows gives a stack its memory page by page: touches each page of a frame of rax bytes, and changes no register.
__attribute__((naked)) void ___chkstk_ms(void) {
    __asm__("push %rcx\n push %rax\n lea 24(%rsp), %rcx\n"
            "1: cmp $4096, %rax\n jb 2f\n sub $4096, %rcx\n testb %cl, (%rcx)\n sub $4096, %rax\n jmp 1b\n"
            "2: sub %rax, %rcx\n testb %cl, (%rcx)\n pop %rax\n pop %rcx\n ret");
}
#endif

// A thread's floating-point mode. Kernels expect rounding to even, denormals and no traps, whatever mode the caller
// has, which is restored.
#if defined(__x86_64__) || defined(__SSE2__)
typedef unsigned int FloatMode;
#define MODE_BITS 0xffc0
#define DEFAULT_MODE 0x1f80
static FloatMode float_mode(void) { return __builtin_ia32_stmxcsr(); }
static void set_float_mode(const FloatMode mode) { __builtin_ia32_ldmxcsr(mode); }
#elif defined(__aarch64__)
typedef unsigned long long FloatMode;
#define MODE_BITS 0x7ffff00
#define DEFAULT_MODE 0
static FloatMode float_mode(void) { return __builtin_arm_rsr64("fpcr"); }
static void set_float_mode(const FloatMode mode) { __builtin_arm_wsr64("fpcr", mode); }
#else
typedef int FloatMode;
#define MODE_BITS 0
#define DEFAULT_MODE 0
static FloatMode float_mode(void) { return 0; }
static void set_float_mode(const FloatMode mode) {}
#endif

// Sets the mode that kernels expect; returns the previous one.
static FloatMode enter_float_mode(void) {
    const FloatMode before = float_mode();
    if ((before & MODE_BITS) != DEFAULT_MODE) set_float_mode(DEFAULT_MODE);
    return before;
}

// What kernels need of OpenCL where a C compiler has no library for it: types, and builtin functions written out. It
// precedes every file that the processor's own back end compiles (delegate/native/compiler.py), without any runtime.
// Functions of the system's mathematical library (sines, powers) are called.
#define LITECL_CPU 1
#define LITECL_NATIVE 1
#define HIDDEN __attribute__((visibility("hidden")))  // for the other files of a library

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;  // 64 bits in OpenCL C, whatever the system
typedef __SIZE_TYPE__ size_t;
typedef uint cl_mem_fence_flags;

#define NATIVE_VECTOR(type, lanes) typedef type type##lanes __attribute__((ext_vector_type(lanes)));
#define NATIVE_VECTORS(type) \
    NATIVE_VECTOR(type, 2) NATIVE_VECTOR(type, 3) NATIVE_VECTOR(type, 4) NATIVE_VECTOR(type, 8) NATIVE_VECTOR(type, 16)
NATIVE_VECTORS(char)
NATIVE_VECTORS(uchar)
NATIVE_VECTORS(short)
NATIVE_VECTORS(ushort)
NATIVE_VECTORS(int)
NATIVE_VECTORS(uint)
NATIVE_VECTORS(long)
NATIVE_VECTORS(ulong)
NATIVE_VECTORS(float)
NATIVE_VECTORS(half)
#ifdef cl_khr_fp64
NATIVE_VECTORS(double)
#endif

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT __FLT_MAX__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define CHAR_BIT 8
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-LONG_MAX - 1)
#define UINT_MAX 0xffffffffU
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

#define as_int(x) __builtin_astype(x, int)
#define as_uint(x) __builtin_astype(x, uint)
#define as_float(x) __builtin_astype(x, float)
#define as_long(x) __builtin_astype(x, long)
#define as_ulong(x) __builtin_astype(x, ulong)
#define as_int2(x) __builtin_astype(x, int2)
#define as_int4(x) __builtin_astype(x, int4)
#define as_int8(x) __builtin_astype(x, int8)
#define as_int16(x) __builtin_astype(x, int16)
#define as_uint2(x) __builtin_astype(x, uint2)
#define as_uint4(x) __builtin_astype(x, uint4)
#define as_uint8(x) __builtin_astype(x, uint8)
#define as_uint16(x) __builtin_astype(x, uint16)
#define as_float2(x) __builtin_astype(x, float2)
#define as_float4(x) __builtin_astype(x, float4)
#define as_float8(x) __builtin_astype(x, float8)
#define as_float16(x) __builtin_astype(x, float16)
#define as_long2(x) __builtin_astype(x, long2)
#define as_long4(x) __builtin_astype(x, long4)
#define as_long8(x) __builtin_astype(x, long8)
#define as_ulong2(x) __builtin_astype(x, ulong2)
#define as_ulong4(x) __builtin_astype(x, ulong4)
#define as_ulong8(x) __builtin_astype(x, ulong8)
#define as_double(x) __builtin_astype(x, double)
#define as_double2(x) __builtin_astype(x, double2)
#define as_double4(x) __builtin_astype(x, double4)
#define as_double8(x) __builtin_astype(x, double8)
#define as_char4(x) __builtin_astype(x, char4)
#define as_uchar4(x) __builtin_astype(x, uchar4)
#define as_ushort4(x) __builtin_astype(x, ushort4)
#define as_short8(x) __builtin_astype(x, short8)
#define as_short16(x) __builtin_astype(x, short16)

// Builtin functions. clang has those on floats that litecl's kernels use, for scalars and vectors alike, at no cost of
// text. Users' kernels (LITECL_USERS), which may mix a vector and a scalar, and an older clang get others.
#define NATIVE_OWN __attribute__((overloadable, always_inline)) static inline
#if __has_builtin(__builtin_elementwise_atan2) && __has_builtin(__builtin_elementwise_fmod)
#define NATIVE_ELEMENTWISE 1
#define ceil(x) __builtin_elementwise_ceil(x)
#define cos(x) __builtin_elementwise_cos(x)
#define exp(x) __builtin_elementwise_exp(x)
#define fabs(x) __builtin_elementwise_abs(x)
#define floor(x) __builtin_elementwise_floor(x)
#define log(x) __builtin_elementwise_log(x)
#define rint(x) __builtin_elementwise_rint(x)
#define sin(x) __builtin_elementwise_sin(x)
#define sqrt(x) __builtin_elementwise_sqrt(x)
#endif
#if defined(NATIVE_ELEMENTWISE) && !defined(LITECL_USERS)
#define atan2(x, y) __builtin_elementwise_atan2(x, y)
#define fma(x, y, z) __builtin_elementwise_fma(x, y, z)
#define fmod(x, y) __builtin_elementwise_fmod(x, y)
#define pow(x, y) __builtin_elementwise_pow(x, y)
#else
#include "native_functions.h"
#endif

NATIVE_OWN int clz(int x) { return x ? __builtin_clz((uint)x) : 32; }
NATIVE_OWN uint clz(uint x) { return x ? __builtin_clz(x) : 32; }
NATIVE_OWN long clz(long x) { return x ? __builtin_clzl((ulong)x) : 64; }
NATIVE_OWN ulong clz(ulong x) { return x ? __builtin_clzl(x) : 64; }
NATIVE_OWN int mul_hi(int x, int y) { return (int)((long)x * y >> 32); }
NATIVE_OWN uint mul_hi(uint x, uint y) { return (uint)((ulong)x * y >> 32); }
NATIVE_OWN ulong mul_hi(ulong x, ulong y) {
    const ulong low = (uint)x * (ulong)(uint)y, a = (x >> 32) * (uint)y + (low >> 32), b = (x & 0xffffffff) * (y >> 32);
    return (x >> 32) * (y >> 32) + (a >> 32) + ((b + (uint)a) >> 32);
}

NATIVE_OWN float vload_half(size_t offset, __global const half *p) { return __builtin_load_halff(p + offset); }
NATIVE_OWN float vload_half(size_t offset, const half *p) { return __builtin_load_halff(p + offset); }
#define NATIVE_LOAD_HALVES(space)                                                                      \
    NATIVE_OWN float4 vload_half4(size_t offset, space const half *p) {                                \
        float4 x;                                                                                      \
        _Pragma("unroll") for (int i = 0; i < 4; ++i) x[i] = __builtin_load_halff(p + 4 * offset + i);                   \
        return x;                                                                                      \
    }
NATIVE_LOAD_HALVES(__global)
NATIVE_LOAD_HALVES(__private)
NATIVE_OWN void vstore_half_rte(float x, size_t offset, __global half *p) { __builtin_store_halff(x, p + offset); }
NATIVE_OWN void vstore_half4_rte(float4 x, size_t offset, __private half *p) {
    _Pragma("unroll") for (int i = 0; i < 4; ++i) __builtin_store_halff(x[i], p + 4 * offset + i);
}

#define mem_fence(flags) __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomic_add(p, value) __sync_fetch_and_add(p, value)
#define atomic_cmpxchg(p, before, after) __sync_val_compare_and_swap(p, before, after)
#define atomic_dec(p) __sync_fetch_and_sub(p, 1)
#define atomic_inc(p) __sync_fetch_and_add(p, 1)

#ifdef _WIN32
int SwitchToThread(void);
#define NATIVE_YIELD() SwitchToThread()
#else
int sched_yield(void);
#define NATIVE_YIELD() sched_yield()
#endif
#if defined(__x86_64__) || defined(__i386__)
#define NATIVE_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define NATIVE_PAUSE() __builtin_arm_yield()
#else
#define NATIVE_PAUSE()
#endif

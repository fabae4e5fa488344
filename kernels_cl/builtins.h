// The builtin functions that kernels use, for a compiler that is told to leave out its own header, whose 18,000 lines of
// declarations take longer to read than most kernels to compile (delegate/opencl/capabilities.py). One that is missing
// here is an error when a kernel calls it. Its macros begin with BUILTIN_, as options may define any others.
// With LITECL_UNIT those that most kernels need are made of what the compiler has, so that a program is whole without the
// library of functions (delegate/opencl/machine_code.py).
#ifndef BUILTIN_DECLARED
#define BUILTIN_DECLARED
#define BUILTIN_OVERLOADED __attribute__((overloadable))
#define BUILTIN_PURE __attribute__((overloadable, const))

#define BUILTIN_ONE(type, name) type BUILTIN_PURE name(type x);
#define BUILTIN_TWO(type, name) type BUILTIN_PURE name(type x, type y);
#define BUILTIN_THREE(type, name) type BUILTIN_PURE name(type x, type y, type z);
#define BUILTIN_FLOATS(F, name) F(float, name) F(float4, name) F(float8, name) F(float16, name) BUILTIN_DOUBLES(F, name)
#ifdef cl_khr_fp64
#define BUILTIN_DOUBLES(F, name) F(double, name)
#else
#define BUILTIN_DOUBLES(F, name)
#endif
#define BUILTIN_INTEGERS(F, name) F(int, name) F(uint, name) F(long, name) F(ulong, name)

BUILTIN_FLOATS(BUILTIN_ONE, cos)
BUILTIN_FLOATS(BUILTIN_ONE, exp)
BUILTIN_FLOATS(BUILTIN_ONE, fabs)
BUILTIN_FLOATS(BUILTIN_ONE, log)
BUILTIN_FLOATS(BUILTIN_ONE, sin)
BUILTIN_FLOATS(BUILTIN_TWO, atan2)
BUILTIN_FLOATS(BUILTIN_TWO, fmax)
BUILTIN_FLOATS(BUILTIN_TWO, fmin)
BUILTIN_FLOATS(BUILTIN_TWO, fmod)
BUILTIN_FLOATS(BUILTIN_TWO, pow)
BUILTIN_FLOATS(BUILTIN_THREE, clamp)
BUILTIN_FLOATS(BUILTIN_THREE, fma)
BUILTIN_INTEGERS(BUILTIN_TWO, max)
BUILTIN_INTEGERS(BUILTIN_TWO, min)
BUILTIN_INTEGERS(BUILTIN_TWO, mul_hi)
BUILTIN_INTEGERS(BUILTIN_THREE, clamp)

#ifdef LITECL_UNIT
#undef ceil  // PoCL has other names for them
#undef floor
#undef rint
#undef sqrt
#undef clz
#define BUILTIN_OWN __attribute__((overloadable, always_inline)) static
#define BUILTIN_LANES(type, name) \
    BUILTIN_OWN type builtin_##name(type x) { \
        for (int i = 0; i < (int)(sizeof(type) / sizeof(float)); ++i) x[i] = builtin_##name(x[i]); \
        return x; \
    }
#define BUILTIN_FLOAT(name) BUILTIN_OWN float builtin_##name(float x) { return __builtin_##name##f(x); }
#ifdef cl_khr_fp64
#define BUILTIN_DOUBLE(name) BUILTIN_OWN double builtin_##name(double x) { return __builtin_##name(x); }
#else
#define BUILTIN_DOUBLE(name)
#endif
#define BUILTIN_OWN_FLOATS(name) \
    BUILTIN_FLOAT(name) BUILTIN_DOUBLE(name) \
    BUILTIN_LANES(float4, name) BUILTIN_LANES(float8, name) BUILTIN_LANES(float16, name)
BUILTIN_OWN_FLOATS(ceil)
BUILTIN_OWN_FLOATS(floor)
BUILTIN_OWN_FLOATS(rint)
BUILTIN_OWN_FLOATS(sqrt)
#define ceil builtin_ceil
#define floor builtin_floor
#define rint builtin_rint
#define sqrt builtin_sqrt
BUILTIN_OWN int builtin_clz(int x) { return x ? __builtin_clz(x) : 32; }
BUILTIN_OWN uint builtin_clz(uint x) { return x ? __builtin_clz(x) : 32; }
BUILTIN_OWN long builtin_clz(long x) { return x ? __builtin_clzl(x) : 64; }
BUILTIN_OWN ulong builtin_clz(ulong x) { return x ? __builtin_clzl(x) : 64; }
#define clz builtin_clz

extern __constant ulong _group_id_x, _num_groups_x;  // PoCL's
#define get_group_id(dimension) _group_id_x
#define get_num_groups(dimension) _num_groups_x
#define mem_fence(flags) __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomic_add(p, value) __sync_fetch_and_add(p, value)
#define atomic_cmpxchg(p, before, after) __sync_val_compare_and_swap(p, before, after)
#define atomic_dec(p) __sync_fetch_and_sub(p, 1)
#define atomic_inc(p) __sync_fetch_and_add(p, 1)
#else
BUILTIN_FLOATS(BUILTIN_ONE, ceil)
BUILTIN_FLOATS(BUILTIN_ONE, floor)
BUILTIN_FLOATS(BUILTIN_ONE, rint)
BUILTIN_FLOATS(BUILTIN_ONE, sqrt)
BUILTIN_INTEGERS(BUILTIN_ONE, clz)

size_t BUILTIN_PURE get_global_id(uint dimension);
size_t BUILTIN_PURE get_global_size(uint dimension);
size_t BUILTIN_PURE get_group_id(uint dimension);
size_t BUILTIN_PURE get_local_id(uint dimension);
size_t BUILTIN_PURE get_local_size(uint dimension);
size_t BUILTIN_PURE get_num_groups(uint dimension);
void __attribute__((overloadable, convergent)) (barrier)(cl_mem_fence_flags flags);
void BUILTIN_OVERLOADED (mem_fence)(cl_mem_fence_flags flags);

#define BUILTIN_ATOMICS(space, type) \
    type BUILTIN_OVERLOADED atomic_add(volatile space type *p, type value); \
    type BUILTIN_OVERLOADED atomic_cmpxchg(volatile space type *p, type before, type after); \
    type BUILTIN_OVERLOADED atomic_dec(volatile space type *p); \
    type BUILTIN_OVERLOADED atomic_inc(volatile space type *p);
BUILTIN_ATOMICS(__global, int)
BUILTIN_ATOMICS(__global, uint)
BUILTIN_ATOMICS(__local, int)
BUILTIN_ATOMICS(__local, uint)
#endif

float4 __attribute__((overloadable, pure)) vload_half4(size_t offset, __global const half *p);
float4 __attribute__((overloadable, pure)) vload_half4(size_t offset, __private const half *p);
float __attribute__((overloadable, pure)) vload_half(size_t offset, __local const half *p);
void __attribute__((overloadable)) vstore_half4_rte(float4 x, size_t offset, __private half *p);
#endif

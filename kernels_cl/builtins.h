// The builtin functions that kernels use, for a compiler that is told to leave out its own header, whose 18,000 lines of
// declarations take longer to read than most kernels to compile (delegate/opencl/capabilities.py). One that is missing
// here is an error when a kernel calls it. Its macros begin with BUILTIN_, as options may define any others.
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

BUILTIN_FLOATS(BUILTIN_ONE, ceil)
BUILTIN_FLOATS(BUILTIN_ONE, cos)
BUILTIN_FLOATS(BUILTIN_ONE, exp)
BUILTIN_FLOATS(BUILTIN_ONE, fabs)
BUILTIN_FLOATS(BUILTIN_ONE, floor)
BUILTIN_FLOATS(BUILTIN_ONE, log)
BUILTIN_FLOATS(BUILTIN_ONE, rint)
BUILTIN_FLOATS(BUILTIN_ONE, sin)
BUILTIN_FLOATS(BUILTIN_ONE, sqrt)
BUILTIN_FLOATS(BUILTIN_TWO, atan2)
BUILTIN_FLOATS(BUILTIN_TWO, fmax)
BUILTIN_FLOATS(BUILTIN_TWO, fmin)
BUILTIN_FLOATS(BUILTIN_TWO, fmod)
BUILTIN_FLOATS(BUILTIN_TWO, pow)
BUILTIN_FLOATS(BUILTIN_THREE, clamp)
BUILTIN_FLOATS(BUILTIN_THREE, fma)
BUILTIN_INTEGERS(BUILTIN_ONE, clz)
BUILTIN_INTEGERS(BUILTIN_TWO, max)
BUILTIN_INTEGERS(BUILTIN_TWO, min)
BUILTIN_INTEGERS(BUILTIN_TWO, mul_hi)
BUILTIN_INTEGERS(BUILTIN_THREE, clamp)

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

float4 __attribute__((overloadable, pure)) vload_half4(size_t offset, __global const half *p);
float4 __attribute__((overloadable, pure)) vload_half4(size_t offset, __private const half *p);
float __attribute__((overloadable, pure)) vload_half(size_t offset, __local const half *p);
void __attribute__((overloadable)) vstore_half4_rte(float4 x, size_t offset, __private half *p);

#undef BUILTIN_OVERLOADED
#undef BUILTIN_PURE
#undef BUILTIN_ONE
#undef BUILTIN_TWO
#undef BUILTIN_THREE
#undef BUILTIN_FLOATS
#undef BUILTIN_DOUBLES
#undef BUILTIN_INTEGERS
#undef BUILTIN_ATOMICS

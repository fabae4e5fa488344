// The builtin functions that kernels use, for a compiler that is told to leave out its own header, whose 18,000 lines of
// declarations take longer to read than most kernels to compile (delegate/opencl/capabilities.py). One that is missing
// here is an error when a kernel calls it.
#define OVERLOADED __attribute__((overloadable))
#define PURE __attribute__((overloadable, const))

#define ONE(type, name) type PURE name(type x);
#define TWO(type, name) type PURE name(type x, type y);
#define THREE(type, name) type PURE name(type x, type y, type z);
#define FLOATS(F, name) F(float, name) F(float4, name) F(float8, name) F(float16, name) DOUBLES(F, name)
#ifdef cl_khr_fp64
#define DOUBLES(F, name) F(double, name)
#else
#define DOUBLES(F, name)
#endif
#define INTEGERS(F, name) F(int, name) F(uint, name) F(long, name) F(ulong, name)

FLOATS(ONE, ceil)
FLOATS(ONE, cos)
FLOATS(ONE, exp)
FLOATS(ONE, fabs)
FLOATS(ONE, floor)
FLOATS(ONE, log)
FLOATS(ONE, rint)
FLOATS(ONE, sin)
FLOATS(ONE, sqrt)
FLOATS(TWO, atan2)
FLOATS(TWO, fmax)
FLOATS(TWO, fmin)
FLOATS(TWO, fmod)
FLOATS(TWO, pow)
FLOATS(THREE, clamp)
FLOATS(THREE, fma)
INTEGERS(ONE, clz)
INTEGERS(TWO, max)
INTEGERS(TWO, min)
INTEGERS(TWO, mul_hi)
INTEGERS(THREE, clamp)

size_t PURE get_global_id(uint dimension);
size_t PURE get_global_size(uint dimension);
size_t PURE get_group_id(uint dimension);
size_t PURE get_local_id(uint dimension);
size_t PURE get_local_size(uint dimension);
size_t PURE get_num_groups(uint dimension);
void __attribute__((overloadable, convergent)) (barrier)(cl_mem_fence_flags flags);
void OVERLOADED (mem_fence)(cl_mem_fence_flags flags);

#define ATOMICS(space, type)                                                         \
    type OVERLOADED atomic_add(volatile space type *p, type value);                  \
    type OVERLOADED atomic_cmpxchg(volatile space type *p, type before, type after); \
    type OVERLOADED atomic_dec(volatile space type *p);                              \
    type OVERLOADED atomic_inc(volatile space type *p);
ATOMICS(__global, int)
ATOMICS(__global, uint)
ATOMICS(__local, int)
ATOMICS(__local, uint)

float4 __attribute__((overloadable, pure)) vload_half4(size_t offset, __global const half *p);

#undef OVERLOADED
#undef PURE
#undef ONE
#undef TWO
#undef THREE
#undef FLOATS
#undef DOUBLES
#undef INTEGERS
#undef ATOMICS

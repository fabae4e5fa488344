// Builtin functions of OpenCL C as functions, whose operands C converts: for users' kernels, and for all kernels if
// clang has none for vectors (native.h).
#define NATIVE_LANES(type) _Pragma("unroll") for (int i = 0; i < (int)(sizeof(type) / sizeof(x[0])); ++i)
#define NATIVE_WIDTHS(F, type, name) F(type##2, name) F(type##4, name) F(type##8, name) F(type##16, name)
#define NATIVE_FLOATS(F, name) F(float, name) NATIVE_WIDTHS(F, float, name) NATIVE_DOUBLES(F, name)
#ifdef cl_khr_fp64
#define NATIVE_DOUBLE(text) text
#define NATIVE_DOUBLES(F, name) F(double, name) NATIVE_WIDTHS(F, double, name)
#else
#define NATIVE_DOUBLE(text)
#define NATIVE_DOUBLES(F, name)
#endif

// Lane by lane.
#define NATIVE_ONE(type, name) NATIVE_OWN type name(type x) { NATIVE_LANES(type) x[i] = name(x[i]); return x; }
#define NATIVE_TWO(type, name) NATIVE_OWN type name(type x, type y) { NATIVE_LANES(type) x[i] = name(x[i], y[i]); return x; }
#define NATIVE_THREE(type, name) \
    NATIVE_OWN type name(type x, type y, type z) { NATIVE_LANES(type) x[i] = name(x[i], y[i], z[i]); return x; }
#define NATIVE_VECTORS_OF(F, name) NATIVE_WIDTHS(F, float, name) NATIVE_DOUBLE(NATIVE_WIDTHS(F, double, name))
#ifndef NATIVE_ELEMENTWISE
#define NATIVE_UNARY(name)                                                          \
    NATIVE_OWN float name(float x) { return __builtin_##name##f(x); }               \
    NATIVE_DOUBLE(NATIVE_OWN double name(double x) { return __builtin_##name(x); }) \
    NATIVE_VECTORS_OF(NATIVE_ONE, name)
NATIVE_UNARY(ceil)
NATIVE_UNARY(cos)
NATIVE_UNARY(exp)
NATIVE_UNARY(fabs)
NATIVE_UNARY(floor)
NATIVE_UNARY(log)
NATIVE_UNARY(rint)
NATIVE_UNARY(sin)
NATIVE_UNARY(sqrt)
#endif
#define NATIVE_BINARY(name)                                                                      \
    NATIVE_OWN float name(float x, float y) { return __builtin_##name##f(x, y); }                \
    NATIVE_DOUBLE(NATIVE_OWN double name(double x, double y) { return __builtin_##name(x, y); }) \
    NATIVE_VECTORS_OF(NATIVE_TWO, name)
NATIVE_BINARY(atan2)
NATIVE_BINARY(fmod)
NATIVE_BINARY(pow)
NATIVE_OWN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
NATIVE_DOUBLE(NATIVE_OWN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); })
NATIVE_VECTORS_OF(NATIVE_THREE, fma)

// Of whole vectors.
#define NATIVE_FMIN(type, name) NATIVE_OWN type fmin(type x, type y) { return __builtin_elementwise_min(x, y); }
#define NATIVE_FMAX(type, name) NATIVE_OWN type fmax(type x, type y) { return __builtin_elementwise_max(x, y); }
NATIVE_FLOATS(NATIVE_FMIN, fmin)
NATIVE_FLOATS(NATIVE_FMAX, fmax)

#define NATIVE_ORDERED(type, name)                                \
    NATIVE_OWN type min(type x, type y) { return y < x ? y : x; } \
    NATIVE_OWN type max(type x, type y) { return x < y ? y : x; } \
    NATIVE_OWN type clamp(type x, type low, type high) { return min(max(x, low), high); }
NATIVE_FLOATS(NATIVE_ORDERED, )
#define NATIVE_INTEGERS(type) NATIVE_ORDERED(type, ) NATIVE_WIDTHS(NATIVE_ORDERED, type, )
NATIVE_INTEGERS(int)
NATIVE_INTEGERS(uint)
NATIVE_INTEGERS(long)
NATIVE_INTEGERS(ulong)

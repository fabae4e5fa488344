// Arithmetic in halves, four at a time: products are added up with a rounding to the nearest for each, and beyond 65504
// become infinite. Where a device computes something else is found out before (delegate/opencl/probes/half_probe.py).
// Macro: EMULATED, for devices without such arithmetic: the same by floats that are rounded, nearly (the product, which is
// exact, and the sum are added in float32 first).
#ifdef EMULATED
typedef float4 Halves;  // each of them a half

inline ushort4 halves_of(const float4 x) {
    ushort4 bits;
    vstore_half4_rte(x, 0, (half *)&bits);
    return bits;
}

inline Halves as_halves(const ushort4 bits) { return vload_half4(0, (const half *)&bits); }
#define ROUNDED(x) as_halves(halves_of(x))
#define FLOATS_OF(x) (x)
#else
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half4 Halves;

// Four halves, rounded to the nearest; beyond their range infinite.
inline ushort4 halves_of(const float4 x) { return as_ushort4(CONVERT(x, half)); }
inline Halves as_halves(const ushort4 bits) { return as_half4(bits); }
#define ROUNDED(x) (x)
#define FLOATS_OF(x) CONVERT(x, float)
#endif

inline Halves halves_at(__local const ushort *p) { return as_halves(*(__local const ushort4 *)p); }

// Whether one of four is infinite, or NaN.
inline bool any_infinite(const float4 x) {
    const int4 found = (as_int4(x) & 0x7f800000) == 0x7f800000;
    return (found.s0 | found.s1 | found.s2 | found.s3) != 0;
}

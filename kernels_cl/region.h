// How the kernel of a whole region calls its functions, which are compiled separately (region.cl).
//
// A function gets its arguments packed, 64 bits each: a scalar, or an offset in bytes from arena, to which a shift is
// added: bits REGION_SIZE_OFFSET_BITS and up select it. A function unpacks its own arguments, so that its caller need
// not know their types.
#include <delegate.plan.region_tables.RegionSize>

#if defined(LITECL_NATIVE)
#define CALLED WIDE __attribute__((visibility("default")))
#elif defined(LITECL_CPU)
#define CALLED __attribute__((noinline))
#else
#define CALLED INLINED
#endif
#define CALLER(name)                                                                                               \
    CALLED void name(const int item_0, const int item_1, const int item_2, const ulong arena,                      \
                     __global const ulong *args, __global const ulong *shifts)

#define OFFSET_OF(arg) ((arg) & ((1UL << REGION_SIZE_OFFSET_BITS) - 1))
#define PLACE(arg) ((__global uchar *)(arena + OFFSET_OF(arg) + shifts[(arg) >> REGION_SIZE_OFFSET_BITS]))
#define POINTER(i) ((__global void *)PLACE(args[i]))
#define SCALAR_int(i) ((int)args[i])
#define SCALAR_float(i) as_float((uint)args[i])
#define SCALAR_long(i) ((long)args[i])
#define SCALAR_uchar(i) ((uchar)args[i])
#define SCALAR_char(i) ((char)args[i])
#define SCALAR_short(i) ((short)args[i])

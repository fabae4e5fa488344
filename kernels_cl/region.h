// How the kernel of a whole region calls its functions, which are compiled apart (region.cl).
//
// A function gets its arguments packed, 64 bits each: a scalar, or an offset in bytes into arena or, with bit 0 set,
// into constants.
#define CALLER(name)                                                                      \
    void name(const int item_0, const int item_1, const int item_2, __global uchar *arena, \
              __global uchar *constants, __global const ulong *args)

#define POINTER(i) ((__global void *)((args[i] & 1 ? constants : arena) + (args[i] & ~1UL)))
#define SCALAR_int(i) ((int)args[i])
#define SCALAR_float(i) as_float((uint)args[i])
#define SCALAR_long(i) ((long)args[i])
#define SCALAR_uchar(i) ((uchar)args[i])
#define SCALAR_char(i) ((char)args[i])

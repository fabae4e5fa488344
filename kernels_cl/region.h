// How the kernel of a whole region calls its functions, which are compiled apart (region.cl).
//
// A function gets its arguments packed, 64 bits each: a scalar, or an offset in bytes into arena or, with bit 0 set,
// into constants. Bits 48 and up of an offset say which of the shifts, which change as the region runs, is added.
#define CALLER(name)                                                                      \
    void name(const int item_0, const int item_1, const int item_2, __global uchar *arena, \
              __global uchar *constants, __global const ulong *args, __global const ulong *shifts)

#define PLACE(arg) ((arg & 1 ? constants : arena) + (arg & 0xfffffffffffeUL) + shifts[arg >> 48])
#define POINTER(i) ((__global void *)PLACE(args[i]))
#define SCALAR_int(i) ((int)args[i])
#define SCALAR_float(i) as_float((uint)args[i])
#define SCALAR_long(i) ((long)args[i])
#define SCALAR_uchar(i) ((uchar)args[i])
#define SCALAR_char(i) ((char)args[i])
#define SCALAR_short(i) ((short)args[i])

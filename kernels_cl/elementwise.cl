// A graph of element-wise operators: every input is read once, results between the operators stay in registers.
// The inputs broadcast to the outputs' shape. The loops go row by row (delegate/kit/loops.py); within a row each input
// advances or is a single element. A work-item takes per_item consecutive elements of the outputs.
// numbers: the graph's constants, floats as their bits. nest: rank, dims[rank], strides[rank] of each input.
// Macros, which delegate/ops/elementwise.py writes: INPUTS, their number; ARRAYS, the parameters; ROWS, where a row of
// each input is; ELEMENTS, what is computed of a vector; PARTIAL, if rows do not consist of whole vectors.
#include "tile.h"
#include "functions.h"
#include "operators.h"

typedef floatv Tv;
VECTORS_OF(int, int)
VECTORS_OF(uchar, uchar)

// A truth value is a byte in memory, and a mask, 0 or not, in registers.
#define IS_TRUE(x) (CONVERT(x, int) != 0)
#define AS_BYTES(mask) CONVERT((mask) & 1, uchar)

#define INPUT(type, k) __global const type *input_##k,
#define OUTPUT(type, k) __global type *output_##k,
#define ROW_OF(type, k) __global const type *x_##k = input_##k + offsets[k] + column;
#define SAME_OF(type, k) __global const type *x_##k = input_##k + offsets[k];

#ifdef PARTIAL
inline VECTOR(uchar) load_bytes(__global const uchar *p, const int count) {
    if (count >= VW) return load_uchar(p);
    VECTOR(uchar) x = 0;
    FIRST(i, count, VW) ((uchar *)&x)[i] = p[i];
    return x;
}

inline void store_bytes(__global uchar *p, VECTOR(uchar) x, const int count) {
    if (count >= VW)
        store_uchar(p, x);
    else
        FIRST(i, count, VW) p[i] = ((uchar *)&x)[i];
}

#define READ_float(p) load_vector(p, count - i)
#define READ_int(p) AS_INTV(load_vector((__global const float *)(p), count - i))
#define READ_uchar(p) IS_TRUE(load_bytes(p, count - i))
#define WRITE_float(p, x) store_vector(p, x, count - i)
#define WRITE_int(p, x) store_vector((__global float *)(p), AS_FLOATV(x), count - i)
#define WRITE_uchar(p, x) store_bytes(p, AS_BYTES(x), count - i)
#else
#define READ_float(p) LOAD(p)
#define READ_int(p) load_int(p)
#define READ_uchar(p) IS_TRUE(load_uchar(p))
#define WRITE_float(p, x) STORE(p, x)
#define WRITE_int(p, x) store_int(p, x)
#define WRITE_uchar(p, x) store_uchar(p, AS_BYTES(x))
#endif

// The statements of ELEMENTS: an input's next vector, or its only element; a result, stored or not.
#define V_float floatv
#define V_int intv
#define V_uchar intv
#define NEXT(type, k) const V_##type v##k = READ_##type(x_##k + i);
#define SAME(type, k) const V_##type v##k = JOIN(SAME_, type)(x_##k[0]);
#define SAME_float(x) (floatv)(x)
#define SAME_int(x) (intv)(x)
#define SAME_uchar(x) ((intv)(x) != 0)
#define STEP(type, k, value) const V_##type v##k = value;
#define RESULT(type, k, value) WRITE_##type(output_##k + at + i, value);

#define NUMBER(k) (floatv)(as_float(numbers[k]))
#define INTEGER(k) (intv)(numbers[k])
#define BOUND(k) as_float(numbers[k])
#define FLOAT_OF_MASK(mask) CONVERT((mask) & 1, float)
#define INT_OF_MASK(mask) ((mask) & 1)
#define FLOAT_OF_INT(x) CONVERT(x, float)
#define IS_FALSE(mask) ((mask) == 0)
#define SELECT(mask, a, b) ((mask) ? (a) : (b))

KERNEL void elementwise(ITEM ARRAYS __global const int *restrict numbers, __global const int *nest, int n, int per_item,
                        int row) {
    SHARE(n, per_item);
    if (start >= end) return;
    const int line = row < n ? start / row : 0;  // a single row needs no division
    int column = start - line * row;
    SEEK_ROWS(nest, INPUTS, line);
    for (int at = start, count; at < end; at += count) {
        count = MIN(row - column, end - at);
        ROWS
        for (int i = 0; i < count; i += VW) {
            ELEMENTS
        }
        column = 0;
        NEXT_ROW(nest, INPUTS, at + count == end);
    }
}

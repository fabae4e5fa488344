// Element-wise operators one after another: y = .. step2(step1(x, a), b) .., where the operands broadcast to x's shape.
// All arrays are walked together, in rows (delegate/kit/strided.py), of which each array steps through its elements or
// repeats one. A block of a row goes through all of the steps before the next one does: it stays in the first-level
// cache. A work-item takes per_item consecutive elements.
// steps: how far each array goes on within a row, then for every step its code, and the array that is its operand (-1:
// none, or a number). numbers: for every step its number, and the arguments of its activation: one that takes an operand
// clamps its result to them.
// walk: rank, dims[rank], strides[rank] of x, of a, b, c and d, and of y.
#include "tile.h"

#define ARRAYS 6
#define BLOCK 1024

#define STEP(code, value)                                                             \
    case code: {                                                                      \
        int i = 0;                                                                    \
        for (; i + VW <= count; i += VW) {                                            \
            const floatv a = LOAD(x + i), b = repeated ? number : LOAD(operand + i);  \
            STORE(y + i, value);                                                      \
        }                                                                             \
        if (i < count) {                                                              \
            const floatv a = load_vector(x + i, count - i);                           \
            const floatv b = repeated ? number : load_vector(operand + i, count - i); \
            store_vector(y + i, value, count - i);                                    \
        }                                                                             \
        break;                                                                        \
    }

// One step of count elements; x may be y. The codes are those of delegate/plan/chain.py.
OUT_OF_LINE WIDE void take_step(const int code, __global const float *x, __global const float *operand,
                                const int repeated, __global float *y, const int count, const float low,
                                const float high) {
    const floatv number = operand[0];
    switch (code) {
        STEP(0, clamp_v(a + b, low, high))
        STEP(1, clamp_v(a - b, low, high))
        STEP(2, clamp_v(b - a, low, high))
        STEP(3, clamp_v(a * b, low, high))
        STEP(4, clamp_v(a / b, low, high))
        STEP(5, clamp_v(b / a, low, high))
        STEP(6, clamp_v(max_v(a, b), low, high))
        STEP(7, clamp_v(min_v(a, b), low, high))
        STEP(8, clamp_v((a - b) * (a - b), low, high))
        STEP(9, clamp_v(a < 0.0f ? a * b : a, low, high))
        STEP(10, abs_v(a))
        STEP(11, -a)
        STEP(12, a * a)
        STEP(13, sqrt(a))
        STEP(14, 1.0f / sqrt(a))
        STEP(15, exp_v(a))
        STEP(16, log_v(a))
        STEP(17, ACTIVATION_CLAMP(a, low, high))
        STEP(18, ACTIVATION_TANH(a, low, high))
        STEP(19, ACTIVATION_LOGISTIC(a, low, high))
        STEP(20, ACTIVATION_SWISH(a, low, high))
        STEP(21, ACTIVATION_HARD_SWISH(a, low, high))
        STEP(22, ACTIVATION_GELU(a, low, high))
        STEP(23, ACTIVATION_GELU_APPROXIMATE(a, low, high))
        STEP(24, ACTIVATION_ELU(a, low, high))
        STEP(25, ACTIVATION_LEAKY_RELU(a, low, high))
    }
}

KERNEL void chain(ITEM __global const float *x, __global const float *a, __global const float *b,
                  __global const float *c, __global const float *d, __global float *y, __global const int *steps,
                  __global const float *numbers, __global const int *walk, int n, int per_item, int row, int count) {
    SHARE(n, per_item);
    __global const float *const arrays[ARRAYS - 1] = {x, a, b, c, d};
    int index[MOST_DIMS], offsets[ARRAYS];
    const int line = row < n ? start / row : 0;  // one row needs no division
    int column = start - line * row;
    walk_from(walk, ARRAYS, line, index, offsets);
    for (int at = start, size; at < end; at += size) {
        size = MIN(MIN(row - column, end - at), BLOCK);
        __global float *to = y + offsets[ARRAYS - 1] + column;
        __global const float *from = x + offsets[0] + column;
        for (int i = 0; i < count; ++i) {
            const int array = steps[ARRAYS + 2 * i + 1];
            __global const float *number = numbers + 3 * i, *operand = number;
            if (array >= 0) operand = arrays[array] + offsets[array] + column * steps[array];
            take_step(steps[ARRAYS + 2 * i], i ? to : from, operand, array < 0 || !steps[array], to, size, number[1],
                      number[2]);
        }
        column += size;
        if (column == row) {
            column = 0;
            walk_on(walk, ARRAYS, index, offsets);
        }
    }
}

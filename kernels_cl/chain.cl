// Element-wise operators one after another: y = .. step2(step1(x, a), b) .., where the operands broadcast to x's shape.
// The loops over all arrays go row by row (delegate/kit/strided.py); within a row an array advances or repeats one
// element. On a CPU a block of a row goes through all steps before the next block does, so that it stays in the
// first-level cache; on a GPU a vector does, and stays in registers. A work-item takes per_item consecutive elements.
// paces: each array's step within a row: 1, or that of REPEATED (common.h). steps: `count` of them. nest: rank,
// dims[rank], strides[rank] of x, of a, b, c and d, and of y.
// Macro: TAKEN, a bit for each step that a chain takes: the others are not compiled.
#include "tile.h"
#include "functions.h"
#include <delegate.ops.chain.ChainArray>
#include <delegate.ops.chain.ChainStep>
#include <delegate.ops.chain_steps.FunctionStep>
#include <delegate.ops.chain_steps.StepCode>

typedef floatv Tv;

#define TAKES(name) ((ulong)(TAKEN) >> STEP_CODE_##name & 1)

// Every step of the running value a and the operand b; EACH_FUNCTION_STEP has the functions of a alone.
#define STEPS(STEP)                                                   \
    STEP(ADD, clamp_v(a + b, low, high))                              \
    STEP(SUB, clamp_v(a - b, low, high))                              \
    STEP(SUB_FROM, clamp_v(b - a, low, high))                         \
    STEP(MUL, clamp_v(a * b, low, high))                              \
    STEP(DIV, clamp_v(a / b, low, high))                              \
    STEP(DIV_INTO, clamp_v(b / a, low, high))                         \
    STEP(MAXIMUM, clamp_v(max_v(a, b), low, high))                    \
    STEP(MINIMUM, clamp_v(min_v(a, b), low, high))                    \
    STEP(MAXIMUM_OVER, clamp_v(max_v(b, a), low, high))               \
    STEP(MINIMUM_UNDER, clamp_v(min_v(b, a), low, high))              \
    STEP(SQUARED_DIFFERENCE, clamp_v((a - b) * (a - b), low, high))   \
    STEP(PRELU, clamp_v(a < 0.0f ? a * b : a, low, high))             \
    STEP(CLAMP, ACTIVATION_CLAMP(a, low, high))                       \
    STEP(TANH, ACTIVATION_TANH(a, low, high))                         \
    STEP(LOGISTIC, ACTIVATION_LOGISTIC(a, low, high))                 \
    STEP(SWISH, ACTIVATION_SWISH(a, low, high))                       \
    STEP(HARD_SWISH, ACTIVATION_HARD_SWISH(a, low, high))             \
    STEP(GELU, ACTIVATION_GELU(a, low, high))                         \
    STEP(GELU_APPROXIMATE, ACTIVATION_GELU_APPROXIMATE(a, low, high)) \
    STEP(ELU, ACTIVATION_ELU(a, low, high))                           \
    STEP(LEAKY_RELU, ACTIVATION_LEAKY_RELU(a, low, high))

#ifdef LITECL_CPU
#define BLOCK 1024
typedef __global const float *Running;  // the block's address
#define begun(from, count) (from)
#define stored(to, x, count)
#define place_in(arrays, offsets, array) ((arrays)[array] + (offsets)[array])

#define IN_BLOCK(name, value)                                                         \
    case STEP_CODE_##name: {                                                          \
        if (!TAKES(name)) break;                                                      \
        int i = 0;                                                                    \
        for (; i + VW <= count; i += VW) {                                            \
            const floatv a = LOAD(x + i), b = pace > 0 ? LOAD(operand + i) : number;  \
            STORE(y + i, value);                                                      \
        }                                                                             \
        if (i < count) {                                                              \
            const floatv a = load_vector(x + i, count - i);                           \
            const floatv b = pace > 0 ? load_vector(operand + i, count - i) : number; \
            store_vector(y + i, value, count - i);                                    \
        }                                                                             \
        break;                                                                        \
    }

#define FUNCTION_IN_BLOCK(name) IN_BLOCK(name, name(a))

// One step of count elements from column `column` of a row on; x may be y.
OUT_OF_LINE WIDE Running take_step(const int code, const Running x, __global const float *operand, const int pace,
                                   const int column, __global float *y, const int count, const float low,
                                   const float high) {
    REPEATED(float, number, operand, column, pace)
    switch (code) { STEPS(IN_BLOCK) EACH_FUNCTION_STEP(FUNCTION_IN_BLOCK) }
    return y;
}
#else
#define BLOCK VW
typedef floatv Running;
VECTORS_OF(float, whole)

inline Running begun(__global const float *from, const int count) {
    return count < VW ? load_vector(from, count) : load_whole(from);
}

inline void stored(__global float *to, const Running x, const int count) {
    if (count < VW)
        store_vector(to, x, count);
    else
        store_whole(to, x);
}

// The address from which an array is read. Indexed pointers would not stay in registers.
inline __global const float *place_in(__global const float *const *arrays, const int *offsets, const int array) {
    __global const float *place = arrays[0] + offsets[0];
    UNROLL for (int i = 1; i < CHAIN_ARRAYS - 1; ++i) place = i == array ? arrays[i] + offsets[i] : place;
    return place;
}

#define OF_VECTOR(name, value)   \
    case STEP_CODE_##name:       \
        if (!TAKES(name)) break; \
        return value;
#define FUNCTION_OF_VECTOR(name) OF_VECTOR(name, name(a))

inline Running take_step(const int code, const Running a, __global const float *operand, const int pace, const int column,
                         __global float *y, const int count, const float low, const float high) {
    const floatv b = pace > 0 ? begun(operand, count) : (floatv)(operand[0]);
    switch (code) { STEPS(OF_VECTOR) EACH_FUNCTION_STEP(FUNCTION_OF_VECTOR) }
    return a;
}
#endif

KERNEL void chain(ITEM __global const float *x, __global const float *a, __global const float *b,
                  __global const float *c, __global const float *d, __global float *y, __global const int *paces,
                  __global const ChainStep *steps, __global const int *nest, int n, int per_item, int row, int count) {
    SHARE(n, per_item);
    __global const float *const arrays[CHAIN_ARRAYS - 1] = {x, a, b, c, d};
    const int line = row < n ? start / row : 0;  // a single row needs no division
    int column = start - line * row;
    SEEK_ROWS(nest, CHAIN_ARRAYS, line);
    for (int at = start, size; at < end; at += size) {
        size = MIN(MIN(row - column, end - at), BLOCK);
        __global float *to = y + offsets[CHAIN_ARRAY_Y] + column;
        Running value = begun(x + offsets[CHAIN_ARRAY_X] + column, size);
        for (int i = 0; i < count; ++i) {
            __global const ChainStep *step = steps + i;
            const int array = step->array;
            __global const float *operand = &step->number;
            const int pace = array < 0 ? 0 : paces[array];
            if (array >= 0) operand = place_in(arrays, offsets, array) + MAX(pace, 0) * column;
            value = take_step(step->code, value, operand, pace, column, to, size, step->low, step->high);
        }
        stored(to, value, size);
        column += size;
        if (column == row) {
            column = 0;
            NEXT_ROW(nest, CHAIN_ARRAYS, at + size == end);
        }
    }
}

// The first and the last part of a step of the basic LSTM cell; the product of `joined` and the weights runs in
// between. A work-item takes per_item of the n rows of the batch.
// Macro: INTEGERS, where activations are unsigned bytes, gates and states 16-bit integers (LstmCell of
// tflite/kernels/internal/reference).
#include "common.h"

#ifdef INTEGERS
typedef uchar Element;
#else
typedef float Element;
#endif

// joined[b] = x[b] then h[b].
KERNEL void join_inputs(ITEM __global const Element *restrict x, __global const Element *restrict h,
                        __global Element *restrict joined, const int n, const int per_item, const int depth,
                        const int units) {
    SHARE(n, per_item);
    for (int b = start; b < end; ++b) {
        __global Element *to = joined + b * (depth + units);
        for (int i = 0; i < depth; ++i) to[i] = x[b * depth + i];
        for (int i = 0; i < units; ++i) to[depth + i] = h[b * units + i];
    }
}

#ifdef INTEGERS
// The upper half of 2 a b, halves rounded up, for 16-bit numbers.
inline int times(const int a, const int b) { return MIN((a * b + (1 << 14)) >> 15, 32767); }

inline int clamped(const int x, const int low, const int high) { return x < low ? low : (x > high ? high : x); }

// x / 2^places, halves away from zero.
inline int divided(const int x, const int places) { return (x + (1 << (places - 1)) + (x >> 31)) >> places; }

// tables: sigmoid and tanh of every 16-bit number with three integer bits. States have four.
KERNEL void finish_step(ITEM __global const short *restrict gates, __global const short *restrict c,
                        __global uchar *restrict h_out, __global short *restrict c_out, __global uchar *restrict h_next,
                        __global short *restrict c_next, const int n, const int per_item, const int units,
                        __global const short *restrict tables) {
    __global const short *logistic = tables, *tangent = tables + (1 << 16);
    SHARE(n, per_item);
    for (int b = start; b < end; ++b) {
        __global const short *z = gates + b * 4 * units;
        for (int i = 0; i < units; ++i) {
            const int at = b * units + i;
            const int added = times(logistic[z[i] & 0xffff], tangent[z[units + i] & 0xffff]);
            const int kept = times(logistic[z[2 * units + i] & 0xffff], c[at]);
            const int state = clamped(divided(added, 4) + kept, -32768, 32767);
            const int narrow = clamped(2 * state, -32768, 32767);
            const int out = times(logistic[z[3 * units + i] & 0xffff], tangent[narrow & 0xffff]);
            c_out[at] = c_next[at] = (short)state;
            h_out[at] = h_next[at] = (uchar)(clamped(divided(out, 8), -128, 127) + 128);
        }
    }
}
#else
// gates[b] holds the sums of the input, cell, forget and output gate. New states are written twice: as outputs, and as
// the variables' new values.
KERNEL void finish_step(ITEM __global const float *restrict gates, __global const float *restrict c,
                        __global float *restrict h_out, __global float *restrict c_out, __global float *restrict h_next,
                        __global float *restrict c_next, const int n, const int per_item, const int units) {
    SHARE(n, per_item);
    for (int b = start; b < end; ++b) {
        __global const float *z = gates + b * 4 * units;
        for (int i = 0; i < units; ++i) {
            const int at = b * units + i;
            const float kept = sigmoid_s(z[2 * units + i]) * c[at];
            const float state = sigmoid_s(z[i]) * tanh_s(z[units + i]) + kept;
            const float out = sigmoid_s(z[3 * units + i]) * tanh_s(state);
            c_out[at] = c_next[at] = state;
            h_out[at] = h_next[at] = out;
        }
    }
}
#endif

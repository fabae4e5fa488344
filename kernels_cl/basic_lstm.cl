// The first and the last part of a step of the basic LSTM cell; between them runs the product of joined and the
// weights.
// A work-item takes per_item of the n rows of the batch.
#include "common.h"

// joined[b] = x[b] then h[b].
KERNEL void join_inputs(ITEM __global const float *restrict x, __global const float *restrict h,
                        __global float *restrict joined, const int n, const int per_item, const int depth,
                        const int units) {
    SHARE(n, per_item);
    for (int b = start; b < end; ++b) {
        __global float *to = joined + b * (depth + units);
        for (int i = 0; i < depth; ++i) to[i] = x[b * depth + i];
        for (int i = 0; i < units; ++i) to[depth + i] = h[b * units + i];
    }
}

// gates[b] holds the sums of the input, cell, forget and output gate. New states are written twice: as outputs, and as
// the variables' new values.
KERNEL void finish_step(ITEM __global const float *restrict gates, __global const float *restrict c,
                          __global float *restrict h_out, __global float *restrict c_out,
                          __global float *restrict h_next, __global float *restrict c_next, const int n,
                          const int per_item, const int units) {
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

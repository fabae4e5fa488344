// Functions of whole rows of `length` elements on a GPU, a group for each row: SOFTMAX, LOG_SOFTMAX, layer norms.
// Macros: ITEMS of a group, a power of two.
#include "common.h"
#include "combine.h"

KERNEL void softmax_local(ITEM __global const float *restrict x, __global float *restrict y, __local float *restrict memory,
                          const int length, const float beta) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    y += (size_t)get_group_id(0) * length;
    float most = -INFINITY, sum = 0.0f;
    for (int i = item; i < length; i += ITEMS) most = MAX(x[i], most);
    COMBINE(MAX, most, most)
    for (int i = item; i < length; i += ITEMS) sum += exp_s((x[i] - most) * beta);
    COMBINE(ADD, sum, sum)
    const float scale = 1.0f / sum;
    for (int i = item; i < length; i += ITEMS) y[i] = exp_s((x[i] - most) * beta) * scale;
}

KERNEL void log_softmax_local(ITEM __global const float *restrict x, __global float *restrict y,
                              __local float *restrict memory, const int length) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    y += (size_t)get_group_id(0) * length;
    float most = -INFINITY, sum = 0.0f;
    for (int i = item; i < length; i += ITEMS) most = MAX(x[i], most);
    COMBINE(MAX, most, most)
    for (int i = item; i < length; i += ITEMS) sum += exp_s(x[i] - most);
    COMBINE(ADD, sum, sum)
    const float log_of_sum = log_s(sum);
    for (int i = item; i < length; i += ITEMS) y[i] = x[i] - most - log_of_sum;
}

KERNEL void layer_norm_local(ITEM __global const float *restrict x, __global const float *restrict gamma,
                             __global const float *restrict beta, __global const float *residual,
                             __global float *restrict y, __local float *restrict memory, const int length,
                             const int centred, const int has_residual, const float epsilon, const float low,
                             const float high) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    y += (size_t)get_group_id(0) * length;
    residual += (size_t)get_group_id(0) * length;
    float sum = 0.0f, squares = 0.0f;
    if (centred) {
        for (int i = item; i < length; i += ITEMS) sum += x[i];
        COMBINE(ADD, sum, sum)
    }
    const float mean = sum / length;
    for (int i = item; i < length; i += ITEMS) squares += (x[i] - mean) * (x[i] - mean);
    COMBINE(ADD, squares, squares)
    const float scale = 1.0f / sqrt(squares / length + epsilon);
    for (int i = item; i < length; i += ITEMS) {
        float z = (x[i] - mean) * scale * gamma[i] + beta[i];
        if (has_residual) z += residual[i];
        y[i] = z < low ? low : z > high ? high : z;  // NaN passes through
    }
}

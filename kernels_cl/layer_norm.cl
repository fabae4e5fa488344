// Rows of length elements with mean 0 and variance 1, times gamma [length], plus beta [length]:
// y = clamp((x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) gamma + beta).
// A work-item takes per_item whole rows (layer_norm_local in rows_local.cl: a group each).
#include "common.h"

KERNEL void layer_norm(ITEM __global const float *x, __global const float *gamma, __global const float *beta,
                       __global float *y, int n, int per_item, int length, float epsilon, float low, float high) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *from = x + row * length;
        __global float *to = y + row * length;
        float sum = 0.0f, squares = 0.0f;
        for (int i = 0; i < length; ++i) sum += from[i];
        const float mean = sum / length;
        for (int i = 0; i < length; ++i) squares += (from[i] - mean) * (from[i] - mean);
        const float scale = 1.0f / sqrt(squares / length + epsilon);
        for (int i = 0; i < length; ++i) {
            const float z = (from[i] - mean) * (scale * gamma[i]) + beta[i];
            to[i] = z < low ? low : z > high ? high : z;  // NaN passes through
        }
    }
}

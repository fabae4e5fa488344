// Normalizes rows of length elements to mean 0 and variance 1, multiplies by gamma [length], adds beta [length] and a
// residual, if any: y = clamp((x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) gamma + beta + residual).
// Without centring, the mean is taken as 0 (RMS norms).
// A work-item takes per_item whole rows (layer_norm_local in rows_local.cl: a group each).
#include "common.h"

inline float sum_of(__global const float *x, const int length) {
    floatv lanes = 0.0f;
    int i = 0;
    for (; i + VW <= length; i += VW) lanes += LOAD(x + i);
    float sum = sum_lanes(lanes);
    for (; i < length; ++i) sum += x[i];
    return sum;
}

inline float squares_of(__global const float *x, const float mean, const int length) {
    floatv lanes = 0.0f;
    int i = 0;
    for (; i + VW <= length; i += VW) {
        const floatv d = LOAD(x + i) - mean;
        lanes += d * d;
    }
    float sum = sum_lanes(lanes);
    for (; i < length; ++i) sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

KERNEL void layer_norm(ITEM __global const float *x, __global const float *gamma, __global const float *beta,
                       __global const float *residual, __global float *y, int n, int per_item, int length, int centred,
                       int has_residual, float epsilon, float low, float high) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *from = x + row * length, *more = residual + row * length;
        __global float *to = y + row * length;
        const float mean = centred ? sum_of(from, length) / length : 0.0f;
        const float scale = 1.0f / sqrt(squares_of(from, mean, length) / length + epsilon);
        int i = 0;
        for (; i + VW <= length; i += VW) {
            floatv z = (LOAD(from + i) - mean) * scale * LOAD(gamma + i) + LOAD(beta + i);
            if (has_residual) z += LOAD(more + i);
            STORE(to + i, clamp_v(z, low, high));  // NaN passes through
        }
        for (; i < length; ++i) {
            float z = (from[i] - mean) * scale * gamma[i] + beta[i];
            if (has_residual) z += more[i];
            to[i] = z < low ? low : z > high ? high : z;
        }
    }
}

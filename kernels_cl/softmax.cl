// SOFTMAX and LOG_SOFTMAX of rows of length elements: exponentials of beta * (x - max), over their sum.
// A work-item takes per_item whole rows.
#include "common.h"

// room: elements from x to the end of its array.
inline float row_max(__global const float *x, int length, int room) {
    floatv most = -INFINITY;
    int i = 0;
    for (; i + VW <= length; i += VW) most = max_v(LOAD(x + i), most);
    if (i < length) most = max_v(load_part(x + i, length - i, room - i, -INFINITY), most);
    return max_lanes(most);
}

KERNEL void softmax(ITEM __global const float *x, __global float *y, int n, int per_item, int length, float beta) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *p = x + row * length;
        __global float *q = y + row * length;
        const int room = (n - row) * length, own = (end - row) * length;
        const float most = row_max(p, length, room);
        floatv sum = 0.0f, last = 0.0f;
        int i = 0;
        for (; i + VW <= length; i += VW) {
            const floatv e = exp_v((LOAD(p + i) - most) * beta);
            STORE(q + i, e);
            sum += e;
        }
        if (i < length) {  // lanes past the row add nothing, whatever beta is
            const floatv e = exp_v((load_part(p + i, length - i, room - i, most) - most) * beta);
            last = LANES < (intv)(length - i) ? e : 0.0f;
        }
        const float scale = 1.0f / sum_lanes(sum + last);
        for (i = 0; i + VW <= length; i += VW) STORE(q + i, LOAD(q + i) * scale);
        if (i < length) store_part(q + i, last * scale, length - i, own - i);
    }
}

KERNEL void log_softmax(ITEM __global const float *x, __global float *y, int n, int per_item, int length) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const float *p = x + row * length;
        __global float *q = y + row * length;
        const int room = (n - row) * length, own = (end - row) * length;
        const float most = row_max(p, length, room);
        floatv sum = 0.0f, last = 0.0f;
        int i = 0;
        for (; i + VW <= length; i += VW) sum += exp_v(LOAD(p + i) - most);
        if (i < length) last = load_part(p + i, length - i, room - i, -INFINITY) - most;
        const float log_of_sum = log_s(sum_lanes(i < length ? sum + exp_v(last) : sum));
        for (i = 0; i + VW <= length; i += VW) STORE(q + i, LOAD(p + i) - most - log_of_sum);
        if (i < length) store_part(q + i, last - log_of_sum, length - i, own - i);
    }
}

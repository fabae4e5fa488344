// The second half of SVDF: each filter forgets the oldest of the `memory` responses that it remembers, keeps the newest,
// weighs them by time, and `rank` filters make a unit.
// newest is [batch][units * rank], state_in and state_out are [batch][units * rank][memory], time [units * rank][memory].
// A work-item takes per_item of the n = batch * units results. bias is read only if has_bias.
// Macros: ACTIVATION (common.h), whose arguments are low and high; or T, the type of results, where they are integers:
// then newest, states and time have 16 bits, and sums are rescaled.
#ifdef T
#include "quantized.h"
typedef short Element;
typedef int Sum;
#else
#include "common.h"
typedef float Element;
typedef float Sum;
#define T float
#endif

// One filter: what it remembers, one response further. read, write: elements from there on that may be read, or that
// the work-item has still to write. Sums of integers wrap, as TensorFlow Lite's do.
inline Sum remember(__global const Element *restrict in, __global const Element *restrict time,
                    __global Element *restrict out, const Element newest, const int memory, const int read,
                    const int write) {
    const int kept = memory - 1;
#ifdef STAGE_ROWS
    uint sum = 0;
    for (int m = 0; m < kept; ++m) {
        const Element value = in[m + 1];
        out[m] = value;
        sum += (uint)(value * time[m]);
    }
    out[kept] = newest;
    return (int)(sum + (uint)(newest * time[kept]));
#else
    floatv sums = 0.0f;
    for (int m = 0; m < kept; m += VW) {
        const floatv value = load_part(in + m + 1, MIN(kept - m, VW), read - m - 1, 0.0f);
        store_part(out + m, value, MIN(kept - m, VW), write - m);
        sums += value * load_part(time + m, MIN(kept - m, VW), memory - m, 0.0f);
    }
    out[kept] = newest;
    return sum_lanes(sums) + newest * time[kept];
#endif
}

KERNEL void svdf(ITEM __global const Element *restrict newest, __global const Element *restrict time,
                 __global const Sum *restrict bias, __global const Element *restrict state_in,
                 __global Element *restrict state_out, __global T *restrict out, const int n, const int per_item,
                 const int units, const int rank, const int memory, const int has_bias,
#ifdef STAGE_ROWS
                 __global const Scale *restrict scale, const int zero) {
#else
                 const float low, const float high) {
#endif
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) {
        const int unit = i % units;
        Sum sum = has_bias ? bias[unit] : 0;
        for (int r = 0; r < rank; ++r) {
            const int at = (i * rank + r) * memory;
            sum += remember(state_in + at, time + (unit * rank + r) * memory, state_out + at, newest[i * rank + r],
                            memory, n * rank * memory - at, end * rank * memory - at);
        }
#ifdef STAGE_ROWS
        out[i] = (T)LANE0(clamp_int(rescale(sum, *scale) + zero, -128, 127));
#else
        out[i] = ACTIVATION_S(sum, low, high);
#endif
    }
}

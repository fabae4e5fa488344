// The second half of SVDF: each filter drops the oldest of the `memory` responses that it remembers, adds the newest,
// and weighs them by time; `rank` filters make a unit.
// newest is [batch][units * rank], state_in and state_out are [batch][units * rank][memory], time [units *
// rank][memory]. A work-item takes per_item of the n = batch * units results, VW at a time. bias is read only if
// has_bias. Macros: ACTIVATION (common.h), whose arguments are low and high; or T, the type of results, if they are
// integers: then newest, states and time have 16 bits, and sums, which wrap as TensorFlow Lite's do, are rescaled.
#ifdef T
#include "quantized.h"
typedef short Element;
typedef uint Sum;
typedef uintv Sumv;
typedef VECTOR(short) Elements;
typedef Elements Elements_u __attribute__((aligned(2)));
#define FULL_LOAD(p) AS_UINTV(CONVERT(*(__global const Elements_u *)(p), int))
#define FULL_STORE(p, x) (*(__global Elements_u *)(p) = CONVERT(AS_INTV(x), short))

inline uint added_lanes(const uintv x) {
    uint sum;
    FOLD(uint, x, ADD, sum)
    return sum;
}
#else
#include "common.h"
typedef float Element;
typedef float Sum;
typedef floatv Sumv;
#define T float
#define FULL_LOAD(p) LOAD(p)
#define FULL_STORE(p, x) STORE(p, x)
#define added_lanes(x) sum_lanes(x)
#endif

// The first `count` elements at p, then zeros. room: elements at p that may be read.
inline Sumv load_elements(__global const Element *p, const int count, const int room) {
    const Sumv none = 0;
    if (room >= VW) return LANES < (intv)count ? FULL_LOAD(p) : none;
    Sumv x = none;
    FIRST(i, count, VW) ((Sum *)&x)[i] = p[i];
    return x;
}

// Advances one filter's responses by a step. read, write: elements from there on that may be read, or that the
// work-item has still to write.
inline Sum remember(__global const Element *restrict in, __global const Element *restrict time,
                    __global Element *restrict out, const Element newest, const int memory, const int read,
                    const int write) {
    const int kept = memory - 1;
    Sumv sums = 0;
    for (int m = 0; m < kept; m += VW) {
        const int count = MIN(kept - m, VW);
        const Sumv value = load_elements(in + m + 1, count, read - m - 1);
        if (write - m >= VW)
            FULL_STORE(out + m, value);
        else
            FIRST(i, count, VW) out[m + i] = (Element)((const Sum *)&value)[i];
        sums += value * load_elements(time + m, count, read - m);
    }
    out[kept] = newest;
    return added_lanes(sums) + (Sum)newest * (Sum)time[kept];
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
    int unit = start % units;
    for (int first = start; first < end; first += VW) {
        const int count = MIN(VW, end - first);
        Sumv results = 0;
        FIRST(lane, count, VW) {
            const int i = first + lane;
            Sum sum = has_bias ? bias[unit] : 0;
            for (int r = 0; r < rank; ++r) {
                const int filter = unit * rank + r, at = (i * rank + r) * memory;
                sum += remember(state_in + at, time + filter * memory, state_out + at, newest[i * rank + r], memory,
                                (units * rank - filter) * memory, end * rank * memory - at);
            }
            ((Sum *)&results)[lane] = sum;
            unit = unit + 1 == units ? 0 : unit + 1;
        }
#ifdef STAGE_ROWS
        const intv y = clamp_int(rescale(AS_INTV(results), *scale) + zero, -128, 127);
        store_lanes(out + first, CONVERT(y, T), count);
#else
        store_part(out + first, ACTIVATION(results, low, high), count, end - first);
#endif
    }
}

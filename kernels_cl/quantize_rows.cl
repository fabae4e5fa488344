// Rows of floats quantized to bytes at run time (quantize_steps.h).
//
// x is [n / parts rows, length]; a row is split into `parts` of part_length elements, the last of which may be shorter.
// First the range of every part is found, then each is quantized by the range of its whole row. A work-item takes
// per_item of the n parts.
// NEAREST: rows are quantized as by XNNPACK, asymmetric or not.
#define T uchar
#include "quantized.h"
#include "quantize_steps.h"

#ifdef NEAREST
#define STEP(low, high, asymmetric) nearest_step(low, high)
#define QUANTIZED nearest_quantized
#else
#define STEP step_between
#define QUANTIZED quantized
#endif

inline Step step_of(__global const float *ranges, int parts, int asymmetric) {
    float low = 0, high = 0;
    for (int part = 0; part < parts; ++part) {
        low = MIN(low, ranges[2 * part]);
        high = MAX(high, ranges[2 * part + 1]);
    }
    return STEP(low, high, asymmetric);
}

// The position of a part, its length, and the number of elements from its first to the end of x.
typedef struct {
    int row, at, count, room;
} Part;

inline Part part_at(int i, int n, int length, int parts, int part_length) {
    const int whole = parts == 1, row = whole ? i : i / parts, rows = whole ? n : n / parts;
    const int first = (i - row * parts) * part_length, at = row * length + first;
    return (Part){row, at, MIN(part_length, length - first), rows * length - at};
}

#define CHAINS 4  // minima and maxima at once, so that none waits for the one before

// The smallest and the largest number of each part, and 0.
KERNEL void find_ranges(ITEM __global const float *x, __global float *ranges, int n, int per_item, int length,
                        int parts, int part_length) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const Part part = part_at(item, n, length, parts, part_length);
        __global const float *p = x + part.at;
        Range ranges_of[CHAINS];
        UNROLL for (int c = 0; c < CHAINS; ++c) ranges_of[c] = (Range)RANGE_OF_ZERO;
        int i = 0;
        for (; i + CHAINS * VW <= part.count; i += CHAINS * VW)
            UNROLL for (int c = 0; c < CHAINS; ++c) widen(&ranges_of[c], LOAD(p + i + c * VW));
        for (; i < part.count; i += VW)
            widen(&ranges_of[0], load_part(p + i, MIN(part.count - i, VW), part.room - i, 0.0f));
        Range range = ranges_of[0];
        UNROLL for (int c = 1; c < CHAINS; ++c) {
            range.low = MAX(ranges_of[c].low, range.low);
            range.high = MAX(ranges_of[c].high, range.high);
        }
        ranges[2 * item] = lowest(range);
        ranges[2 * item + 1] = highest(range);
    }
}

// The bytes of each part, made unsigned, and the zero point and scale of each row.
KERNEL void quantize_rows(ITEM __global const float *x, __global const float *ranges, __global uchar *y,
                          __global int *zeros, __global float *scales, int n, int per_item, int length, int parts,
                          int part_length, int asymmetric) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const Part part = part_at(item, n, length, parts, part_length);
        const Step by = step_of(ranges + 2 * part.row * parts, parts, asymmetric);
        __global const float *p = x + part.at;
        __global uchar *q = y + part.at;
        int i = 0;
        for (; i + VW <= part.count; i += VW) *(__global Tv_g *)(q + i) = CONVERT(QUANTIZED(LOAD(p + i), by) + 128, uchar);
        if (i < part.count) {
            const intv last = QUANTIZED(load_part(p + i, part.count - i, part.room - i, 0.0f), by) + 128;
            store_lanes(q + i, CONVERT(last, uchar), part.count - i);
        }
        zeros[part.row] = (int)by.zero + 128;
        scales[part.row] = by.scale;
    }
}

// The floats that the bytes of each part represent.
KERNEL void round_rows(ITEM __global const float *x, __global const float *ranges, __global float *y, int n,
                       int per_item, int length, int parts, int part_length, int asymmetric) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const Part part = part_at(item, n, length, parts, part_length);
        const Step by = step_of(ranges + 2 * part.row * parts, parts, asymmetric);
        __global const float *p = x + part.at;
        __global float *q = y + part.at;
        for (int i = 0; i < part.count; i += VW) {
            const floatv v = load_part(p + i, MIN(part.count - i, VW), part.room - i, 0.0f);
            const floatv whole = CONVERT(QUANTIZED(v, by) - (int)by.zero, float);
            store_part(q + i, whole * by.scale, MIN(part.count - i, VW), part.count - i);
        }
    }
}

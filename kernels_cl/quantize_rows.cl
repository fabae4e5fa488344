// Quantizes rows of floats to bytes at run time (quantize_steps.h).
//
// x is [n / parts rows, length]; a row is split into `parts` of part_length elements, the last of which may be shorter.
// The range of every part is found first; then each part is quantized by the range of its whole row. A work-item takes
// per_item of the n parts.
// NEAREST: rows are quantized as in XNNPACK, asymmetric or not.
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

// The range of count elements at p. room: elements that may be read.
INLINE Range range_of(__global const float *p, int count, int room) {
    Range ranges[CHAINS];
    UNROLL for (int c = 0; c < CHAINS; ++c) ranges[c] = (Range)RANGE_OF_ZERO;
    int i = 0;
    for (; i + CHAINS * VW <= count; i += CHAINS * VW)
        UNROLL for (int c = 0; c < CHAINS; ++c) widen(&ranges[c], LOAD(p + i + c * VW));
    for (; i < count; i += VW) widen(&ranges[0], load_part(p + i, MIN(count - i, VW), room - i, 0.0f));
    Range range = ranges[0];
    UNROLL for (int c = 1; c < CHAINS; ++c) {
        range.low = MAX(ranges[c].low, range.low);
        range.high = MAX(ranges[c].high, range.high);
    }
    return range;
}

// The smallest and the largest number of each part, and 0.
KERNEL void find_ranges(ITEM __global const float *x, __global float *ranges, int n, int per_item, int length,
                        int parts, int part_length) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const Part part = part_at(item, n, length, parts, part_length);
        const Range range = range_of(x + part.at, part.count, part.room);
        ranges[2 * item] = lowest(range);
        ranges[2 * item + 1] = highest(range);
    }
}

// Writes count elements at p as unsigned bytes.
INLINE void to_bytes(__global const float *p, __global uchar *q, int count, int room, Step by) {
    int i = 0;
    for (; i + VW <= count; i += VW) *(__global Tv_g *)(q + i) = CONVERT(QUANTIZED(LOAD(p + i), by) + 128, uchar);
    if (i < count) {
        const intv last = QUANTIZED(load_part(p + i, count - i, room - i, 0.0f), by) + 128;
        store_lanes(q + i, CONVERT(last, uchar), count - i);
    }
}

// Quantizes each part to unsigned bytes, and writes the zero point and scale of each row.
KERNEL void quantize_rows(ITEM __global const float *x, __global const float *ranges, __global uchar *y,
                          __global int *zeros, __global float *scales, int n, int per_item, int length, int parts,
                          int part_length, int asymmetric) {
    SHARE(n, per_item);
    for (int item = start; item < end; ++item) {
        const Part part = part_at(item, n, length, parts, part_length);
        const Step by = step_of(ranges + 2 * part.row * parts, parts, asymmetric);
        __global const float *p = x + part.at;
        to_bytes(p, y + part.at, part.count, part.room, by);
        zeros[part.row] = (int)by.zero + 128;
        scales[part.row] = by.scale;
    }
}

#ifdef NEAREST
// Quantizes short rows, one part each, VW at a time, so that their steps are computed together.
KERNEL void quantize_short_rows(ITEM __global const float *x, __global uchar *y, __global int *zeros,
                                __global float *scales, int n, int per_item, int length) {
    SHARE(n, per_item);
    for (int first = start; first < end; first += VW) {
        const int count = MIN(VW, end - first);
        floatv low = 0.0f, high = 1.0f;
        for (int r = 0; r < count; ++r) {
            const int at = (first + r) * length;
            const Range range = range_of(x + at, length, n * length - at);
            ((float *)&low)[r] = lowest(range);
            ((float *)&high)[r] = highest(range);
        }
        const Steps by = nearest_steps(low, high);
        for (int r = 0; r < count; ++r) {
            const int row = first + r, at = row * length;
            const float zero = ((const float *)&by.zero)[r];
            to_bytes(x + at, y + at, length, n * length - at, (Step){0, ((const float *)&by.inverse)[r], zero, -128});
            zeros[row] = (int)zero + 128;
            scales[row] = ((const float *)&by.scale)[r];
        }
    }
}
#endif

// The floats that each part's bytes represent.
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

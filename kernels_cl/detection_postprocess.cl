// TFLite_Detection_PostProcess: boxes of a detector, decoded from constant anchors [boxes, 4] (y, x, height, width),
// none of which overlaps a better one of the same score column by more than most_shared. See DetectionPostprocess for
// the sizes.
//
// Fast suppression uses the best class of every box: best_classes makes keys of them, with per_item boxes for each
// work-item, and one work-item of fast_suppression selects boxes and writes the results. Regular suppression handles
// every class separately: decode_boxes decodes all boxes, regular_suppression selects boxes of per_item classes, and
// one work-item of best_detections keeps the best of all.
//
// A key has the bits of a score, arranged so that unsigned numbers sort like scores, the highest first. real_scores
// comes first if scores are quantized. Macros: BYTES_OF_BOXES, if encodings are quantized; DECODED: boxes were decoded
// before.
#include "common.h"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define BELOW(a, b) ((a).score > (b).score)  // for a partial sort, whose heap begins with the lowest of the best
#include "boxes.h"
#include "heap.h"
#include <delegate.ops.detection_postprocess.DetectionPostprocess>

#define EXCLUDED 0xffffffffu
#define KEY_BYTES 4
#define DIGITS 256

#ifdef BYTES_OF_BOXES
typedef uchar Encoding;
#define ENCODED(x) (((float)(x) - d->boxes_zero) * d->boxes_scale)
#else
typedef float Encoding;
#define ENCODED(x) (x)
#endif

// -0 gets the key of 0.
inline uint key_of(const float score, __global const DetectionPostprocess *d) {
    if (!(score >= d->score_threshold)) return EXCLUDED;
    const uint bits = as_uint(score + 0.0f);
    return bits >> 31 ? bits : ~(bits | 0x80000000u);
}

inline float centre(const float offset, const float scale, const float size, const float anchor) {
    const double moved = (double)offset / (double)scale * (double)size;
    return (float)(moved + (double)anchor);
}

inline float half_side(const float offset, const float scale, const float size) {
    return (float)(0.5 * exp((double)offset / (double)scale) * (double)size);
}

inline float4 decoded(__global const Encoding *encoding, __global const float *anchor,
                      __global const DetectionPostprocess *d) {
    const float y = centre(ENCODED(encoding[0]), d->y_scale, anchor[2], anchor[0]);
    const float x = centre(ENCODED(encoding[1]), d->x_scale, anchor[3], anchor[1]);
    const float height = half_side(ENCODED(encoding[2]), d->h_scale, anchor[2]);
    const float width = half_side(ENCODED(encoding[3]), d->w_scale, anchor[3]);
    return (float4)(y - height, x - width, y + height, x + width);
}

#ifdef DECODED
#define CORNERS_OF(i) (*(__global const float4_u *)(corners + 4 * (i)))
#define ENCODED_BOXES __global const float *corners
#define GIVEN_BOXES corners
#else
#define CORNERS_OF(i) decoded(encodings + (i) * d->encoding_step, anchors + 4 * (i), d)
#define ENCODED_BOXES __global const Encoding *encodings, __global const float *anchors
#define GIVEN_BOXES encodings, anchors
#endif
typedef float4 float4_u __attribute__((aligned(4)));

// Sorts the boxes whose keys are not excluded by key, then by number, digit after digit (a radix sort). Each of the two
// arrays has room for all boxes; returns the one with the result.
OUT_OF_LINE __global int *in_order(__global const uint *keys, const int boxes, __global int *order, __global int *other,
                                   int *count) {
    int starts[KEY_BYTES][DIGITS];
    for (int byte = 0; byte < KEY_BYTES; ++byte)
        for (int digit = 0; digit < DIGITS; ++digit) starts[byte][digit] = 0;
    int n = 0;
    for (int i = 0; i < boxes; ++i) {
        const uint key = keys[i];
        if (key == EXCLUDED) continue;
        order[n++] = i;
        UNROLL for (int byte = 0; byte < KEY_BYTES; ++byte) ++starts[byte][key >> 8 * byte & 255];
    }
    *count = n;
    for (int byte = 0; byte < KEY_BYTES; ++byte) {
        int sum = 0, alike = 0;
        for (int digit = 0; digit < DIGITS; ++digit) {
            const int own = starts[byte][digit];
            alike |= own == n;
            starts[byte][digit] = sum;
            sum += own;
        }
        if (alike) continue;
        for (int i = 0; i < n; ++i) other[starts[byte][keys[order[i]] >> 8 * byte & 255]++] = order[i];
        __global int *sorted = other;
        other = order;
        order = sorted;
    }
    return order;
}

// Selects at most `most` of the boxes with keys; returns their number. kept: BOX_ROWS rows of d->room floats.
OUT_OF_LINE int select_boxes(ENCODED_BOXES, __global const uint *keys, __global int *order, __global int *other,
                             __global float *kept, __global int *chosen, __global const DetectionPostprocess *d) {
    int count, found = 0;
    __global const int *sorted = in_order(keys, d->boxes, order, other, &count);
    const float most_shared = d->iou_threshold;
    const int room = d->room, most = d->most;
    for (int i = 0; i < count && found < most; ++i) {
        const float4 corners_ = CORNERS_OF(sorted[i]);
        const float area = area_of(corners_);
        const Boxes box = same_boxes(corners_, area);
        int covered = 0;
        for (int at = 0; at < found && !covered; at += VW)
            covered = any_lane(overlaps(kept_boxes(kept + at, room), box) > most_shared && LANES < (intv)(found - at));
        if (covered) continue;
        keep_box(kept + found, room, corners_, area);
        chosen[found++] = sorted[i];
    }
    return found;
}

inline void write_detection(__global float *boxes, __global float *classes, __global float *scores, const int row,
                            const float4 corners, const int class, const float score) {
    UNROLL for (int i = 0; i < 4; ++i) boxes[4 * row + i] = ((const float *)&corners)[i];
    classes[row] = (float)class;
    scores[row] = score;
}

// numbers: of the bytes among the first `whole` elements, then of those after them.
KERNEL void real_scores(ITEM __global const uchar *bytes, __global const float *numbers, __global float *scores, int whole,
                        int n, int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) scores[i] = numbers[(i < whole ? 0 : 256) + bytes[i]];
}

#ifndef DECODED
// Finds the `wanted` best classes of a box, best first. Of equal scores the first wins if one is wanted, else the order
// is that of a partial sort.
OUT_OF_LINE void sort_classes(__global const float *row, __global Candidate *best, const int wanted,
                              __global const DetectionPostprocess *d) {
    if (wanted == 1) {
        int top = 0;
        for (int i = 1; i < d->classes; ++i)
            if (row[i] > row[top]) top = i;
        best[0] = (Candidate){row[top], top, 0};
        return;
    }
    for (int i = 0; i < wanted; ++i) best[i] = (Candidate){row[i], i, 0};
    for (int i = wanted / 2 - 1; i >= 0; --i) sink(best, i, wanted, best[i]);
    for (int i = wanted; i < d->classes; ++i) {
        const Candidate x = {row[i], i, 0};
        if (BELOW(x, best[0])) sink(best, 0, wanted, x);
    }
    for (int end = wanted - 1; end > 0; --end) {
        const Candidate last = best[end];
        best[end] = best[0];
        sink(best, 0, end, last);
    }
}

// The best score of a box. With a NaN it depends on the order of the scores.
inline float best_of(__global const float *row, __global Candidate *best, __global const DetectionPostprocess *d) {
    const int classes = d->classes;
    float top = row[0];
    int i = 0, numbers = 1;
    if (classes >= VW) {
        floatv tops = LOAD(row);
        intv unlike = tops != tops;
        for (i = VW; i + VW <= classes; i += VW) {
            const floatv x = LOAD(row + i);
            tops = x > tops ? x : tops;
            unlike = unlike || x != x;
        }
        top = max_lanes(tops);
        numbers = !any_lane(unlike);
    }
    for (; i < classes; ++i) {
        top = row[i] > top ? row[i] : top;
        numbers = numbers && row[i] == row[i];
    }
    if (!numbers) {
        sort_classes(row, best, d->wanted, d);
        top = best[0].score;
    }
    return top;
}

// best: room for `wanted` candidates of each work-item.
KERNEL void best_classes(ITEM __global const float *scores, __global uint *keys, __global Candidate *best,
                         __global const DetectionPostprocess *d, int n, int per_item) {
    SHARE(n, per_item);
    __global Candidate *own = best + ITEM_INDEX(0) * d->wanted;
    for (int box = start; box < end; ++box)
        keys[box] = key_of(best_of(scores + box * d->score_step + d->first_class, own, d), d);
}

KERNEL void fast_suppression(ITEM ENCODED_BOXES, __global const float *scores, __global const uint *keys,
                             __global int *order, __global int *other, __global float *kept, __global int *chosen,
                             __global Candidate *best, __global float *boxes_out, __global float *classes_out,
                             __global float *scores_out, __global float *count_out, __global const DetectionPostprocess *d) {
    const int found = select_boxes(GIVEN_BOXES, keys, order, other, kept, chosen, d);
    for (int row = 0; row < d->rows; ++row)
        write_detection(boxes_out, classes_out, scores_out, row, (float4)(0.0f), 0, 0.0f);
    for (int i = 0; i < found; ++i) {
        const int box = chosen[i];
        const float4 corners = (float4)(kept[i], kept[d->room + i], kept[2 * d->room + i], kept[3 * d->room + i]);
        sort_classes(scores + box * d->score_step + d->first_class, best, d->wanted, d);
        for (int j = 0; j < d->wanted; ++j)
            write_detection(boxes_out, classes_out, scores_out, i * d->width + j, corners, best[j].box, best[j].score);
    }
    *count_out = (float)found;
}
#else
KERNEL void decode_boxes(ITEM __global const Encoding *encodings, __global const float *anchors, __global float *corners,
                         __global const DetectionPostprocess *d, int n, int per_item) {
    SHARE(n, per_item);
    for (int box = start; box < end; ++box)
        *(__global float4_u *)(corners + 4 * box) = decoded(encodings + box * d->encoding_step, anchors + 4 * box, d);
}

// keys, order and other have room for all boxes of each work-item, kept for its selected boxes. chosen: `most` boxes a
// class; counts: their number.
KERNEL void regular_suppression(ITEM __global const float *corners, __global const float *scores, __global uint *keys,
                                __global int *order, __global int *other, __global float *kept, __global int *chosen,
                                __global int *counts, __global const DetectionPostprocess *d, int n, int per_item) {
    SHARE(n, per_item);
    const int boxes = d->boxes, item = ITEM_INDEX(0);
    __global uint *own_keys = keys + item * boxes;
    for (int class = start; class < end; ++class) {
        for (int box = 0; box < boxes; ++box)
            own_keys[box] = key_of(scores[box * d->score_step + d->first_class + class], d);
        counts[class] = select_boxes(corners, own_keys, order + item * boxes, other + item * boxes,
                                     kept + item * BOX_ROWS * d->room, chosen + class * d->most, d);
    }
}

// best: max_detections candidates; `compared` holds the class.
KERNEL void best_detections(ITEM __global const float *corners, __global const float *scores, __global const int *chosen,
                            __global const int *counts, __global Candidate *best, __global float *boxes_out,
                            __global float *classes_out, __global float *scores_out, __global float *count_out,
                            __global const DetectionPostprocess *d) {
    const int most = d->max_detections;
    int found = 0;
    for (int class = 0; class < d->classes; ++class)
        for (int i = 0; i < counts[class]; ++i) {
            const int box = chosen[class * d->most + i];
            const float score = scores[box * d->score_step + d->first_class + class];
            if (found == most && !(score > best[most - 1].score)) break;
            int at = found < most ? found++ : most - 1;
            for (; at > 0 && score > best[at - 1].score; --at) best[at] = best[at - 1];
            best[at] = (Candidate){score, box, class};
        }
    for (int row = 0; row < d->rows; ++row)
        write_detection(boxes_out, classes_out, scores_out, row, (float4)(0.0f), 0, 0.0f);
    for (int i = 0; i < found; ++i)
        write_detection(boxes_out, classes_out, scores_out, i, CORNERS_OF(best[i].box), best[i].compared, best[i].score);
    *count_out = (float)found;
}
#endif

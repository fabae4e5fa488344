// NON_MAX_SUPPRESSION_V4 and _V5 of boxes [n, 4], opposite corners (y, x, y, x), and their scores: the numbers of at
// most `most` boxes, best first, none of which overlaps a better one by iou_threshold; then zeros. A box returns to the
// queue after it was compared with the boxes selected so far, even if it was selected itself, as in TensorFlow Lite: a
// box without an area does not even overlap itself.
// One work-item does it all. queue has n candidates, kept BOX_ROWS rows of `room` floats.
// Macro: SOFT: an overlap lowers a score, by sigma, and selected gets the scores.
#include "common.h"

#define BELOW(a, b) ((a).score < (b).score)
#include "boxes.h"
#include "heap.h"

#ifdef SOFT
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define SOFT_ARGS __global const float *sigma, __global float *selected,
#else
#define SOFT_ARGS
#endif

inline float4 corners_of(__global const float *box) {
    return (float4)(LESSER(box[0], box[2]), LESSER(box[1], box[3]), GREATER(box[0], box[2]), GREATER(box[1], box[3]));
}

KERNEL void non_max_suppression(ITEM __global const float *boxes, __global const float *scores,
                                __global const float *iou_threshold, __global const float *score_threshold,
                                SOFT_ARGS __global int *chosen, __global int *count, __global Candidate *queue,
                                __global float *kept, int n, int most, int room) {
    const float most_shared = *iou_threshold, lowest = *score_threshold;
#ifdef SOFT
    const int soft = *sigma > 0.0f;
    const float scale = soft ? -0.5f / *sigma : 0.0f;
    for (int i = 0; i < most; ++i) selected[i] = 0.0f;
#endif
    for (int i = 0; i < most; ++i) chosen[i] = 0;
    int size = 0;
    for (int i = 0; i < n; ++i)
        if (scores[i] > lowest) {
            rise(queue, size, 0, (Candidate){scores[i], i, 0});
            ++size;
        }
    const int wanted = MIN(size, most);
    int found = 0;
    while (found < wanted && size > 0) {
        Candidate next = queue[0];
        --size;
        if (size > 0) sink(queue, 0, size, queue[size]);
        const float before = next.score;
        const float4 corners = corners_of(boxes + 4 * next.box);
        const float area = area_of(corners);
        const Boxes box = same_boxes(corners, area);
        int covered = 0;
        for (int end = found; end > next.compared && !covered;) {  // the selected boxes, the last first
            const int block = (end - 1) / VW * VW, first = MAX(block, next.compared);
            const floatv iou = overlaps(box, kept_boxes(kept + block, room));
#ifdef SOFT
            if (soft) {
                for (int i = end - 1; i >= first; --i) {
                    const float shared = LANE(float, iou, i - block);
                    if (shared >= most_shared) {
                        covered = 1;
                        break;
                    }
                    const float exponent = scale * shared;
                    next.score = next.score * (float)exp((double)(exponent * shared));
                    if (next.score <= lowest) break;
                }
                if (next.score <= lowest) break;
            } else
#endif
                covered = any_lane(iou >= most_shared && LANES >= (intv)(first - block) && LANES < (intv)(end - block));
            end = block;
        }
        if (covered) continue;
        next.compared = found;
        if (next.score == before) {
            keep_box(kept + found, room, corners, area);
            chosen[found] = next.box;
#ifdef SOFT
            selected[found] = next.score;
#endif
            ++found;
        }
        if (next.score > lowest) {
            rise(queue, size, 0, next);
            ++size;
        }
    }
    *count = found;
}

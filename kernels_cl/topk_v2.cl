// TOPK_V2: the k largest elements of every row of x [rows, length] in descending order, and their positions. Equal
// elements keep their order; NaN comes before all numbers. Each element is inserted among those kept so far. A
// work-item takes per_item rows.
// Macros: T, the type of the elements; R, that of the positions.
#include "common.h"

#define PRECEDES(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

KERNEL void topk_v2(ITEM __global const T *x, __global T *values, __global R *places, int n, int per_item, int length,
                    int k) {
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const T *from = x + row * length;
        __global T *best = values + row * k;
        __global R *place = places + row * k;
        for (int i = 0; i < length; ++i) {
            const T value = from[i];
            int at = MIN(i, k);
            if (at == k && !PRECEDES(value, best[k - 1])) continue;
            for (at = MIN(at, k - 1); at > 0 && PRECEDES(value, best[at - 1]); --at) {
                best[at] = best[at - 1];
                place[at] = place[at - 1];
            }
            best[at] = value;
            place[at] = (R)i;
        }
    }
}

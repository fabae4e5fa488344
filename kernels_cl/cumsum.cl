// CUMSUM: running sums along the middle dimension of x [outer, length, inner].
// A work-item takes per_item lines along that dimension.
// first: the position at which a line starts; step: from one position to the next (1, or -1 in reverse).
// exclusive: whether a sum leaves out its own position.
// Macro: T, the element type.
#include "common.h"

KERNEL void cumsum(ITEM __global const T *x, __global T *y, int n, int per_item, int length, int inner, int first,
                   int step, int exclusive) {
    SHARE(n, per_item);
    for (int line = start; line < end; ++line) {
        const int outer = line / inner, column = line - outer * inner;
        int at = (outer * length + first) * inner + column;
        T sum = 0;
        for (int k = 0; k < length; ++k, at += step * inner) {
            const T value = x[at], before = sum;
            sum += value;
            y[at] = exclusive ? before : sum;
        }
    }
}

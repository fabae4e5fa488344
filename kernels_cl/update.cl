// y = x [outer, size, inner] with update [outer, part, inner] in it along one axis, at a position that is moved to
// where there is room. A single launch, for devices on which launches cost more than elements.
// A work-item takes per_item consecutive elements.
// Macros: T, an integer type of the elements' size; I, the type of the position.
#include "common.h"

KERNEL void update(ITEM __global const T *x, __global const T *update, __global T *y, __global const I *position, int n,
                   int per_item, int size, int part, int inner) {
    SHARE(n, per_item);
    const I most = size - part;
    const int first = *position < 0 ? 0 : (*position > most ? most : *position);
    for (int at = start; at < end; ++at) {
        const int row = at / inner, i = row % size - first;
        y[at] = i < 0 || i >= part ? x[at] : update[(row / size * part + i) * inner + at % inner];
    }
}

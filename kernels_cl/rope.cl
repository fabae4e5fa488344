// Rotary position embedding: rotates the pairs (x[i], x[i + half]) of every row by an angle of its position, and
// scales: y[i] = scale (x[i] cos[i] - x[i + half] sin[i]), y[i + half] = scale (x[i + half] cos[far + i] + x[i] sin[far
// + i]). Rows are those of three loops, the innermost with one position if possible (the record Rope). A work-item
// takes per_item vectors of pairs, at the same i of neighbouring rows.
// Macros: ANGLES, if angles are computed here: then cosines are positions of type T, and sines the frequencies.
#include "tile.h"
#include "functions.h"
#include <delegate.ops.rope.Rope>

#ifndef ANGLES
#define T float
#endif

typedef floatv Tv;

KERNEL void rope(ITEM __global const float *x, __global const T *cosines, __global const float *sines, __global float *y,
                 __global const Rope *r, int n, int per_item) {
    SHARE(n, per_item);
    floatv c = 0.0f, s = 0.0f, far_c = 0.0f, far_s = 0.0f;
    for (int at = start; at < end; ++at) {
        const int inner = at % r->inner.size, rest = at / r->inner.size, i = rest % r->blocks * VW;
        const int middle = rest / r->blocks % r->middle.size, outer = rest / r->blocks / r->middle.size;
        const int count = MIN(VW, r->half_length - i);
        if (at == start || inner == 0 || r->inner.turns) {
            const int turn = outer * r->outer.turns + middle * r->middle.turns + inner * r->inner.turns;
#ifdef ANGLES
            const floatv angles = (float)cosines[turn] * load_vector(sines + i, count);
            c = far_c = COS(angles);
            s = far_s = SIN(angles);
#else
            c = load_vector(cosines + turn + i, count);
            s = load_vector(sines + turn + i, count);
            far_c = r->far ? load_vector(cosines + turn + r->far + i, count) : c;
            far_s = r->far ? load_vector(sines + turn + r->far + i, count) : s;
#endif
        }
        __global const float *from = x + outer * r->outer.x + middle * r->middle.x + inner * r->inner.x + i;
        __global float *to = y + outer * r->outer.y + middle * r->middle.y + inner * r->inner.y + i;
        const floatv near = load_vector(from, count), other = load_vector(from + r->half_length, count);
        store_vector(to, (near * c - other * s) * r->scale, count);
        store_vector(to + r->half_length, (other * far_c + near * far_s) * r->scale, count);
    }
}

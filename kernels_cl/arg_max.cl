// ARG_MAX and ARG_MIN: the first position of the largest or smallest element along the middle dimension of
// x [outer, length, inner].
// A work-item takes per_item elements of y [outer, inner].
// Macros: T, R: the types of x and y; OP: GREATER or LESS; LANES_OF, the type in which elements of at most 32 bits are
// compared, if inner is 1: then the lanes of vectors share a row.
#include "common.h"
#include "order.h"

#ifdef LANES_OF
typedef VECTOR(T) Tv;
typedef Tv Tv_u __attribute__((aligned(sizeof(T))));
typedef VECTOR(LANES_OF) Lv;

#define BETTER(a, b) (WINS(a, b) ? (a) : (b))
#define NEARER(a, b) MIN(a, b)

// The position in a row of length elements. room: elements from p to the end of its array. All lanes begin with the
// first element.
inline int place_in_row(__global const T *p, int length, int room) {
    Lv best = (Lv)(LANES_OF)p[0];
    intv places = 0;
    for (int k = 0; k < length; k += VW) {
        Lv x = best;
        if (room - k >= VW)
            x = CONVERT(*(__global const Tv_u *)(p + k), LANES_OF);
        else
            FIRST(i, length - k, VW) ((LANES_OF *)&x)[i] = p[k + i];
        const intv wins = WINS(x, best) && LANES < length - k;
        best = wins ? x : best;
        places = wins ? LANES + k : places;
    }
    LANES_OF most;
    FOLD(LANES_OF, best, BETTER, most)
    const intv own = WINS((Lv)most, best) ? (intv)length : places;
    int place;
    FOLD(int, own, NEARER, place)
    return place;
}
#endif

KERNEL void arg_max(ITEM __global const T *x, __global R *y, int n, int per_item, int length, int inner) {
    SHARE(n, per_item);
#ifdef LANES_OF
    for (int row = start; row < end; ++row)
        y[row] = (R)place_in_row(x + row * length, length, (n - row) * length);
#else
    for (int at = start; at < end; ++at) {
        const int outer = at / inner, column = at - outer * inner;
        __global const T *p = x + outer * length * inner + column;
        T best = p[0];
        int place = 0;
        for (int k = 1; k < length; ++k) {
            const T value = p[k * inner];
            place = WINS(value, best) ? k : place;
            best = WINS(value, best) ? value : best;
        }
        y[at] = (R)place;
    }
#endif
}

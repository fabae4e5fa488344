// Normalization over the cells of integer_lstm.cl: the moments of a gate's sums, and VW normalized sums. Without
// LAYER_NORM sums are unchanged.
#ifdef LAYER_NORM
#define SUM_AT(sums, gate, u) (sums)[(u) / VW * PANEL + (gate) * VW + (u) % VW]

#ifdef PRODUCTS_8
#include "float64.h"

typedef struct {
    float mean, inverse;
} Moments;

INLINE float divided(const float x, const float y) { return AS_FLOAT(OVER(REAL(x), REAL(y))); }

// Adds one element after the other, as TensorFlow Lite does; divisions and roots are rounded once.
INLINE Moments moments(__global const short *sums, const int gate, const int units, const int guard) {
    float sum = 0.0f, squares = 0.0f;
    for (int u = 0; u < units; ++u) {
        const float z = SUM_AT(sums, gate, u), square = z * z;
        sum += z;
        squares += square;
    }
    const float mean = divided(sum, units), product = mean * mean, variance = divided(squares, units) - product;
    const float deviation = variance < 0.0f ? NAN : AS_FLOAT(ROOT(REAL(variance == 0.0f ? 1e-8f : variance)));
    return (Moments){mean, divided(1.0f, deviation)};
}

INLINE intv normalized(const intv z, const Moments m, const Cell *cell, const int gate, const int at,
                       __global const IntegerRecurrence *g) {
    __global const IntegerGate *by = cell->gates + gate;
    const int from = gate * g->blocks * VW + at;
    const floatv weights = CONVERT(LOADI(cell->norm + from), float);
    const floatv biases = CONVERT(LOADI(cell->norm + NV * g->blocks * VW + from), float) * by->bias_scale;
    const floatv y = ((CONVERT(z, float) - m.mean) * m.inverse * weights * by->norm_scale + biases) * 4096.0f;
    const floatv half_away = y + copysign_v((floatv)(0.49999997f), y);
    return CONVERT(y != y ? (floatv)(0.0f) : clamp_v(half_away, -32768.0f, 32767.0f), int);
}
#else
typedef struct {
    long mean;
    int value, shift;
} Moments;

INLINE int times(const int a, const int b) {
    const long product = ((long)a * b + (1L << 30)) >> 31;
    return (int)MIN(product, 2147483647L);
}

INLINE int saturated_shift(const int x, const int places) {
    const long y = (long)x << places;
    return (int)MIN(MAX(y, -2147483648L), 2147483647L);
}

// 1 / sqrt(x), by five steps of Newton's method (GetInvSqrtQuantizedMultiplierExp).
INLINE void inverse_sqrt(int x, Moments *m) {
    const int bits = 32 - (int)clz(x);
    if (bits <= 1) {
        m->value = 2147483647, m->shift = 0;
        return;
    }
    const int down = MAX(bits - 28, 0) / 2;
    x >>= 2 * down;
    const int up = MAX(31 - (bits - 2 * down), 0) / 2 - 1;
    const int part = (x << 2 * MAX(up, 0)) >> 1, half_x = (part + 1) >> 1;
    int root = 1 << 28;
    for (int i = 0; i < 5; ++i) {
        const int cube = saturated_shift(times(times(root, root), root), 6);
        root = saturated_shift(times(root, (1 << 28) + (1 << 27)) - times(half_x, cube), 3);
    }
    const int shift = 11 + down - up;
    m->value = times(root, 1518500250) << MAX(-shift, 0), m->shift = MAX(shift, 0);
}

// Mean times 1024, and 1 / standard deviation.
INLINE Moments moments(__global const short *sums, const int gate, const int units, const int guard) {
    long sum = 0, squares = 0;
    for (int u = 0; u < units; ++u) {
        const int z = SUM_AT(sums, gate, u);
        sum += z;
        squares += z * z;
    }
    Moments m;
    m.mean = 1024 * sum / units;
    const int variance = (int)((squares * ((1 << 20) / units) - m.mean * m.mean) / (1 << 20));
    inverse_sqrt(variance < 1 ? guard : variance, &m);
    return m;
}

INLINE intv normalized(const intv z, const Moments m, const Cell *cell, const int gate, const int at,
                       __global const IntegerRecurrence *g) {
    const int from = gate * g->blocks * VW + at;
    const intv normal = requantize((z << 10) - (int)m.mean, m.value, 0, m.shift);
    const uintv product = AS_UINTV(normal) * AS_UINTV(LOADI(cell->norm + from));
    const intv y = AS_INTV(product + AS_UINTV(LOADI(cell->norm + NV * g->blocks * VW + from)));
    const intv whole = y >> 10, rest = y & 1023, one = 1, none = 0;  // y / 1024, halves away from zero, the rest dropped
    return to_16_bits(rescale(whole + (y > 0 ? rest >> 9 : (rest > 512 ? one : none)), cell->gates[gate].norm));
}
#endif
#else
typedef int Moments;
#define moments(sums, gate, units, guard) 0
#define normalized(z, m, cell, gate, at, g) (z)
#endif

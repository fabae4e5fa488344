// SOFTMAX of rows of length quantized 16-bit elements, in fixed point (reference/softmax.h: SoftmaxInt16).
// exponentials, inverses: 513 samples each of e^x on [-10, 0] and of 1 / (1 + x) on [0, 1], in units of 2^-15.
// A work-item takes per_item whole rows.
// Macros: T and WORDS (quantized.h).
#include "quantized.h"

// Interpolates between two of 513 samples; the slope wraps at 16 bits.
inline int interpolate(__global const int *table, int x) {
    const int place = (x >> 7) + 256, slope = (short)(table[place + 1] - table[place]);
    return table[place] + ((slope * (x & 127) + 64) >> 7);
}

inline int clamp_word(int x) { return MIN(MAX(x, -32768), 32767); }

// MultiplyByQuantizedMultiplier of one number.
inline int rescale_one(int x, const Scale by) {
    const int y = (int)(((long)(x << by.left) * by.multiplier + (1L << 30)) >> 31);
    return by.right > 0 ? (y + (1 << (by.right - 1)) + (y >> 31)) >> by.right : y;
}

KERNEL void softmax_16(ITEM __global const T *x, __global const int *exponentials, __global const int *inverses,
                       __global T *y, int n, int per_item, int length, int multiplier, int left, int right) {
    const Scale by = {.multiplier = multiplier, .left = left, .right = right};
    SHARE(n, per_item);
    for (int row = start; row < end; ++row) {
        __global const T *p = x + row * length;
        __global T *q = y + row * length;
        int most = p[0], sum = 0;
        for (int i = 1; i < length; ++i) most = MAX(most, (int)p[i]);
        for (int i = 0; i < length; ++i) {
            const int e = interpolate(exponentials, clamp_word(rescale_one(p[i] - most, by) + 32767));
            q[i] = (T)e;
            sum += e;
        }
        int headroom = 0;
        while (headroom < 31 && (sum << headroom) >= 0) ++headroom;
        const int shifted = (int)((((uint)sum << (headroom - 1)) + (1u << 13)) >> 14);  // of 31 bits, rounded up: 32
        const int inverse = interpolate(inverses, clamp_word(shifted - (1 << 15) - (1 << 16)));
        const int back = 31 - headroom;
        for (int i = 0; i < length; ++i) {
            const long product = (long)q[i] * inverse + (1L << (back - 1));
            q[i] = (T)MIN(MAX((int)(product >> back), 0), 32767);
        }
    }
}

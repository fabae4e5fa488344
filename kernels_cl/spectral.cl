// RFFT2D: the spectrum of real images, rows by rfft_rows, then columns in place by fft_columns. The transform is
// Stockham's of radix 2. A vector's lanes are adjacent rows or columns. Each work-item's scratch memory has real and
// imaginary parts, twice, of `points` vectors each. tables hold e^(-2 pi i k / length) as pairs.
// REAL, IMAG and COMPLEX_ABS: complex_part of complex numbers, pairs of floats. A work-item takes per_item of them.
// Macro: PART: REAL_PART, IMAGINARY_PART or MAGNITUDE, which neither overflows nor loses digits.
#include "common.h"

typedef struct {
    __global float *real, *imaginary;
} Signal;

inline Signal signal_at(__global float *memory, const int number, const int points) {
    __global float *real = memory + 2 * number * points * VW;
    return (Signal){real, real + points * VW};
}

// Transforms a power of two of points in `from`; `other` is as large. step: entries of the table from one point to the
// next. Returns the memory with the result.
inline Signal transform(Signal from, Signal other, const int points, __global const float *table, const int step) {
    for (int half_length = points / 2, apart = 1; half_length > 0; half_length /= 2, apart *= 2) {
        for (int p = 0; p < half_length; ++p) {
            const float real = table[2 * p * apart * step], imaginary = table[2 * p * apart * step + 1];
            for (int q = 0; q < apart; ++q) {
                const int a = (q + apart * p) * VW, b = a + apart * half_length * VW;
                const int sum = (q + 2 * apart * p) * VW, difference = sum + apart * VW;
                const floatv a_real = LOAD(from.real + a), a_imaginary = LOAD(from.imaginary + a);
                const floatv b_real = LOAD(from.real + b), b_imaginary = LOAD(from.imaginary + b);
                const floatv real_less = a_real - b_real, imaginary_less = a_imaginary - b_imaginary;
                STORE(other.real + sum, a_real + b_real);
                STORE(other.imaginary + sum, a_imaginary + b_imaginary);
                STORE(other.real + difference, real_less * real - imaginary_less * imaginary);
                STORE(other.imaginary + difference, real_less * imaginary + imaginary_less * real);
            }
        }
        const Signal result = other;
        other = from;
        from = result;
    }
    return from;
}

// Transforms x [images, x_height, x_width] to y [images, height, width / 2 + 1] (pairs), padding x with zeros. The even
// elements of a row are real parts and the odd ones imaginary parts of half as many points, whose transform is
// separated. A work-item takes per_item blocks of VW rows.
KERNEL void rfft_rows(ITEM __global const float *x, __global float *y, __global const float *table, __global float *memory,
                      int n, int per_item, int rows, int x_height, int x_width, int height, int width) {
    SHARE(n, per_item);
    const int points = MAX(width / 2, 1), columns = width / 2 + 1, inside = MIN(x_width, width);
    __global float *own = memory + ITEM_INDEX(0) * 4 * points * VW;
    const Signal packed = signal_at(own, 0, points), other = signal_at(own, 1, points);
    for (int block = start; block < end; ++block) {
        const int first = block * VW, lanes = MIN(rows - first, VW);
        for (int i = 0; i < points * VW; i += VW) {
            STORE(packed.real + i, (floatv)(0.0f));
            STORE(packed.imaginary + i, (floatv)(0.0f));
        }
        for (int lane = 0; lane < lanes; ++lane) {
            const int image = (first + lane) / height, row = first + lane - image * height;
            if (row >= x_height) continue;
            __global const float *from = x + (image * x_height + row) * x_width;
            for (int i = 0; i < inside; ++i)
                (i & 1 ? packed.imaginary : packed.real)[i / 2 * VW + lane] = from[i];
        }
        const Signal z = transform(packed, other, points, table, 2);
        for (int k = 0; k < columns; ++k) {
            const int at = (k & (points - 1)) * VW, mirrored = (points - k & (points - 1)) * VW;
            const float c = table[2 * k], s = table[2 * k + 1];
            const floatv real = LOAD(z.real + at), imaginary = LOAD(z.imaginary + at);
            const floatv other_real = LOAD(z.real + mirrored), other_imaginary = LOAD(z.imaginary + mirrored);
            const floatv even_real = (real + other_real) * 0.5f, even_imaginary = (imaginary - other_imaginary) * 0.5f;
            const floatv odd_real = (imaginary + other_imaginary) * 0.5f, odd_imaginary = (other_real - real) * 0.5f;
            const floatv y_real = even_real + (odd_real * c - odd_imaginary * s);
            const floatv y_imaginary = even_imaginary + (odd_imaginary * c + odd_real * s);
            __global float *to = y + 2 * (first * columns + k);
            for (int lane = 0; lane < lanes; ++lane, to += 2 * columns) {
                to[0] = LANE(float, y_real, lane);
                to[1] = LANE(float, y_imaginary, lane);
            }
        }
    }
}

// Transforms y [images, height, columns] (pairs) in place. A work-item takes per_item blocks of VW columns of an image.
KERNEL void fft_columns(ITEM __global float *y, __global const float *table, __global float *memory, int n, int per_item,
                        int height, int columns) {
    SHARE(n, per_item);
    __global float *own = memory + ITEM_INDEX(0) * 4 * height * VW;
    const Signal signal = signal_at(own, 0, height), other = signal_at(own, 1, height);
    const int blocks = (columns + VW - 1) / VW;
    for (int block = start; block < end; ++block) {
        const int image = block / blocks, first = (block - image * blocks) * VW, lanes = MIN(columns - first, VW);
        __global float *pairs = y + 2 * (image * height * columns + first);
        for (int row = 0; row < height; ++row)
            for (int lane = 0; lane < VW; ++lane) {
                const int at = 2 * (row * columns + lane);
                signal.real[row * VW + lane] = lane < lanes ? pairs[at] : 0.0f;
                signal.imaginary[row * VW + lane] = lane < lanes ? pairs[at + 1] : 0.0f;
            }
        const Signal z = transform(signal, other, height, table, 1);
        for (int row = 0; row < height; ++row)
            for (int lane = 0; lane < lanes; ++lane) {
                const int at = 2 * (row * columns + lane);
                pairs[at] = z.real[row * VW + lane];
                pairs[at + 1] = z.imaginary[row * VW + lane];
            }
    }
}

#ifdef PART
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define REAL_PART(a, b) (a)
#define IMAGINARY_PART(a, b) (b)
#define MAGNITUDE(a, b) magnitude(a, b)

inline float magnitude(const float a, const float b) {
    const float root = (float)sqrt((double)a * a + (double)b * b);
    const int infinite = (as_int(a) & 0x7fffffff) == 0x7f800000 || (as_int(b) & 0x7fffffff) == 0x7f800000;
    return infinite ? INFINITY : root;  // beside NaN too
}

KERNEL void complex_part(ITEM __global const float *x, __global float *y, int n, int per_item) {
    SHARE(n, per_item);
    for (int i = start; i < end; ++i) y[i] = PART(x[2 * i], x[2 * i + 1]);
}
#endif

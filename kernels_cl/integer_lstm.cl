// An integer LSTM cell over all time steps: 8-bit activations, 16-bit gates and cell states
// (tflite/kernels/lstm_eval.cc). A product computes the input's part of the gates for all steps beforehand.
// With PRODUCTS_8 both products of a gate are rounded to 8 bits before they are added, normalization is in floats, and
// projected values have 16 bits.
// Units are arranged in blocks of VW: of_input is [rows][blocks][NV gates][VW], recurrent [blocks][row_bytes /
// 4][NV][VW][4], its stage [blocks][NV][4][VW]; peephole [1 or batch][3][blocks][VW], norm [2][NV][blocks][VW], weights
// and biases. projection is [outputs / VW][hidden_bytes / 4][VW][4], or [2] words, its stage [outputs / VW][4][VW].
// tables: the activations of the gates and of the state for every 16-bit number.
// rows and cells hold a row for each batch entry: its last output, made unsigned, and the values to project. A
// work-group computes one batch entry, and its work-items share the blocks: on a CPU one work-item does it all. Macros:
// NV (the number of gates); WIDTH (tile.h); CIFG, PEEPHOLE, PROJECTION, LAYER_NORM, PRODUCTS_8 where there is one.
#define T char
#define PANEL (NV * VW)
#include "quantized.h"
#include "lstm_gates.h"
#include <delegate.recurrent.integer_cell.IntegerGate>
#include <delegate.recurrent.integer_cell.IntegerRecurrence>
#include <delegate.recurrent.integer_cell.IntegerTable>

#ifdef PRODUCTS_8
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF  // TensorFlow Lite rounds every product
#endif

typedef VECTOR(short) Words;
typedef Words Words_u __attribute__((aligned(2)));

typedef struct {
    __global const int *stage;
    __global const short *peephole, *tables;
    __global const int *norm;
    __global const IntegerGate *gates;
} Cell;

// The first `count` words at p as integers, and zeros.
INLINE intv load_words(__global const short *p, const int count) {
    if (count >= VW) return CONVERT(*(__global const Words_u *)p, int);
    intv x = 0;
    FIRST(i, count, VW) ((int *)&x)[i] = p[i];
    return x;
}

INLINE void store_words(__global short *p, const intv x, const int count) {
    if (count >= VW) {
        *(__global Words_u *)p = CONVERT(x, short);
        return;
    }
    FIRST(i, count, VW) p[i] = (short)((const int *)&x)[i];
}

// A byte plus 128, as unsigned, in a signed byte.
INLINE Tv flipped(const intv x) { return CONVERT(x < 0 ? x + 128 : x - 128, char); }

INLINE intv to_16_bits(const intv x) { return clamp_int(x, -32768, 32767); }
INLINE intv within(const intv x, const int bound) { return bound > 0 ? clamp_int(x, -bound, bound) : x; }

INLINE intv looked_up(const Cell *cell, const int table, const intv x) {
    __global const short *values = cell->tables + (table << 16);
    intv y;
    UNROLL for (int i = 0; i < VW; ++i) ((int *)&y)[i] = values[((const int *)&x)[i] & 0xffff];
    return y;
}

// sums[j] += bytes of a row times weights [count / 4][vectors][VW][4], odd fours separately from even ones.
#define MULTIPLY_ROW(sums, vectors, row, weights, count, DOT)                                                    \
    {                                                                                                        \
        intv odd_[vectors];                                                                                  \
        UNROLL for (int j = 0; j < vectors; ++j) odd_[j] = 0;                                                \
        int k_ = 0;                                                                                          \
        for (; k_ + 8 <= (count); k_ += 8) {                                                                 \
            __global const char *w_ = (weights) + (size_t)k_ * vectors * VW;                                 \
            const intv even_x = *(__global const int *)((row) + k_), odd_x = *(__global const int *)((row) + k_ + 4); \
            UNROLL for (int j = 0; j < vectors; ++j) sums[j] = DOT(sums[j], even_x, LOADI(w_ + j * VW * 4)); \
            UNROLL for (int j = 0; j < vectors; ++j) odd_[j] = DOT(odd_[j], odd_x, LOADI(w_ + (vectors + j) * VW * 4)); \
        }                                                                                                    \
        if (k_ < (count)) {                                                                                  \
            __global const char *w_ = (weights) + (size_t)k_ * vectors * VW;                                 \
            const intv last_x = *(__global const int *)((row) + k_);                                         \
            UNROLL for (int j = 0; j < vectors; ++j) sums[j] = DOT(sums[j], last_x, LOADI(w_ + j * VW * 4)); \
        }                                                                                                    \
        UNROLL for (int j = 0; j < vectors; ++j) sums[j] += odd_[j];                                         \
    }

INLINE intv requantized(const intv sum, __global const int *stage) {
    return requantize_lanes(sum, LOADI(stage + STAGE_ROW_MULTIPLIER * VW), LOADI(stage + STAGE_ROW_THIRD * VW),
                            LOADI(stage + STAGE_ROW_RIGHT * VW));
}

#ifdef PRODUCTS_8
// A product rounded to 8 bits, in steps of the sum of both products.
INLINE intv rounded(const intv x, const int zero, const Scale by) {
    return rescale(clamp_int(x + zero, -128, 127) - zero, by);
}
#endif

INLINE intv peep(const intv z, const intv c, const Cell *cell, const int gate, const int place, const int at,
                 __global const IntegerRecurrence *g) {
#ifdef PEEPHOLE
    const intv weights = load_words(cell->peephole + place * g->blocks * VW + at, VW);
    return to_16_bits(z + rescale(weights * c, cell->gates[gate].peephole));
#else
    return z;
#endif
}

// The sums of one block's gates, before normalization, replace the input's part of them.
OUT_OF_LINE WIDE void sum_block(__global short *sums, __global const uchar *h, __global const char *weights,
                                __global const short *c_old, const Cell *cell, const int block,
                                __global const IntegerRecurrence *g) {
    __global const int *stage = cell->stage + block * NV * STAGE_ROWS * VW;
    intv z[NV];
    UNROLL for (int j = 0; j < NV; ++j) z[j] = LOADI(stage + j * STAGE_ROWS * VW + STAGE_ROW_BIAS * VW);
    MULTIPLY_ROW(z, NV, h, weights + (size_t)block * g->row_bytes * PANEL, g->row_bytes, DOT4)
    sums += block * PANEL;
    UNROLL for (int j = 0; j < NV; ++j) {
        const intv of_input = load_words(sums + j * VW, VW), of_output = requantized(z[j], stage + j * STAGE_ROWS * VW);
#ifdef PRODUCTS_8
        __global const IntegerGate *gate = cell->gates + j;
        z[j] = to_16_bits(rounded(of_input, gate->input_zero, gate->input) +
                          rounded(of_output, gate->output_zero, gate->output));
#else
        z[j] = to_16_bits(of_input + of_output);
#endif
    }
    const int at = block * VW;
    const intv c = load_words(c_old + at, g->units - at);
#ifndef CIFG
    z[INPUT] = peep(z[INPUT], c, cell, INPUT, PEEPHOLE_INPUT, at, g);
#endif
    z[FORGET] = peep(z[FORGET], c, cell, FORGET, PEEPHOLE_FORGET, at, g);
    UNROLL for (int j = 0; j < NV; ++j) store_words(sums + j * VW, z[j], VW);
}

#include "integer_norm.h"

// The new states of one row; peepholes are added to the output gate's sums.
OUT_OF_LINE WIDE void update_states(__global short *sums, __global const short *c_old, __global short *c_new,
                                    const Cell *cell, const int first, const int step,
                                    __global const IntegerRecurrence *g) {
    Moments m[NV];
    UNROLL for (int gate = 0; gate < OUTPUT; ++gate) m[gate] = moments(sums, gate, g->units, cell->gates[gate].guard);
    for (int block = first; block < g->blocks; block += step) {
        __global short *own = sums + block * PANEL;
        const int at = block * VW, count = g->units - at;
        intv z[NV];
        UNROLL for (int gate = 0; gate < OUTPUT; ++gate)
            z[gate] = normalized(load_words(own + gate * VW, VW), m[gate], cell, gate, at, g);
        const intv forget = looked_up(cell, INTEGER_TABLE_GATE, z[FORGET]);
#ifdef CIFG
        const intv input = 32767 - forget;
#else
        const intv input = looked_up(cell, INTEGER_TABLE_GATE, z[INPUT]);
#endif
        const intv candidate = looked_up(cell, INTEGER_TABLE_CELL, z[CELL]);
        const intv kept = divide_by_power_v(forget * load_words(c_old + at, count), 15);
        const intv added = divide_by_power_v(input * candidate, g->added_shift);
        const intv c = within(to_16_bits(kept + added), g->cell_clip);
        store_words(c_new + at, c, count);
        const intv output = peep(load_words(own + OUTPUT * VW, VW), c, cell, OUTPUT, PEEPHOLE_OUTPUT, at, g);
        store_words(own + OUTPUT * VW, output, VW);
    }
}

// The cells' output of one row: stored in the row's own memory and, without a projection, in out.
OUT_OF_LINE WIDE void put_out(__global const short *sums, __global const short *c, __global uchar *to,
                              __global char *out, const Cell *cell, const int first, const int step,
                              __global const IntegerRecurrence *g) {
    const Moments m = moments(sums, OUTPUT, g->units, cell->gates[OUTPUT].guard);
    for (int block = first; block < g->blocks; block += step) {
        const int at = block * VW, count = g->units - at;
        const intv z = normalized(load_words(sums + block * PANEL + OUTPUT * VW, VW), m, cell, OUTPUT, at, g);
        const intv state = looked_up(cell, INTEGER_TABLE_STATE, load_words(c + at, count));
        const intv hidden = looked_up(cell, INTEGER_TABLE_GATE, z) * state;
#ifdef PRODUCTS_8
        store_words((__global short *)to + at, divide_by_power_v(hidden, 15), count);
#else
        const intv y = clamp_int(rescale(hidden, g->hidden) + g->hidden_zero, -128, 127);
        store_lanes((__global char *)to + at, flipped(y), count);
#ifndef PROJECTION
        store_lanes(out + at, CONVERT(y, char), count);
#endif
#endif
    }
}

#ifdef PROJECTION
OUT_OF_LINE WIDE void project(__global const uchar *cells, __global uchar *h, __global char *out,
                              __global const char *weights, __global const int *stage, const int panel,
                              __global const IntegerRecurrence *g) {
    stage += panel * STAGE_ROWS * VW;
    weights += (size_t)panel * g->hidden_bytes * VW;
    intv sum[1] = {LOADI(stage + STAGE_ROW_BIAS * VW)};
#ifdef PRODUCTS_8
    MULTIPLY_ROW(sum, 1, cells, weights, g->hidden_bytes, DOT2)
#else
    MULTIPLY_ROW(sum, 1, cells, weights, g->hidden_bytes, DOT4)
#endif
    const intv y = within(clamp_int(requantized(sum[0], stage) + g->output_zero, -128, 127), g->projection_clip);
    const int at = panel * VW, count = g->outputs - at;
    store_lanes((__global char *)h + at, flipped(y), count);
    store_lanes(out + at, CONVERT(y, char), count);
}
#endif

KERNEL void integer_lstm(ITEM __global short *of_input, __global const char *restrict recurrent,
                         __global const int *restrict stage, __global const short *restrict peephole,
                         __global const int *restrict norm, __global const short *restrict tables,
                         __global const char *restrict projection, __global const int *restrict projection_stage,
                         __global const IntegerGate *restrict gates, __global const char *h_in,
                         __global const short *c_in, __global char *h_out, __global short *c_out, __global char *out,
                         __global uchar *rows, __global uchar *cells, __global const IntegerRecurrence *restrict g) {
    const int first = LOCAL_ITEM, step = LOCAL_ITEMS, b = ITEM_INDEX(1);
    const Cell cell = {.stage = stage,
                       .peephole = peephole + b * g->peephole_step,
                       .tables = tables,
                       .norm = norm,
                       .gates = gates};
    __global uchar *h = rows + b * g->row_bytes;
    __global char *to = out + g->time.out_first + b * g->time.out_batch;
    for (int i = first; i < g->outputs; i += step) h[i] = h_in[b * g->outputs + i] ^ 128;
    ALL_ITEMS_DONE;
    for (int t = 0; t < g->time.steps; ++t, to += g->time.out_time) {
        __global short *sums = of_input + (size_t)(g->time.x_first + t * g->time.x_time + b * g->time.x_batch) * g->blocks * PANEL;
        __global const short *c_old = t == 0 ? c_in + b * g->units : c_out + b * g->units;
        for (int i = first; i < g->blocks; i += step) {
            const int block = t % 2 ? g->blocks - 1 - i : i;  // backwards: the last weights are still in the cache
            sum_block(sums, h, recurrent, c_old, &cell, block, g);
        }
        ALL_ITEMS_DONE;
        update_states(sums, c_old, c_out + b * g->units, &cell, first, step, g);
        ALL_ITEMS_DONE;
#ifdef PROJECTION
        __global uchar *hidden = cells + b * g->hidden_bytes;
        put_out(sums, c_out + b * g->units, hidden, to, &cell, first, step, g);
        ALL_ITEMS_DONE;
        for (int panel = first; panel * VW < g->outputs; panel += step)
            project(hidden, h, to, projection, projection_stage, panel, g);
#else
        put_out(sums, c_out + b * g->units, h, to, &cell, first, step, g);
#endif
        ALL_ITEMS_DONE;
    }
    for (int i = first; i < g->outputs; i += step) h_out[b * g->outputs + i] = h[i] ^ 128;
}

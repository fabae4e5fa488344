// A recurrent cell over all time steps. The input's part of the gates, and their biases, are computed beforehand for
// all steps (a matrix product), so that a step consists of the recurrent product, the gates and the projection:
//   z = of_input[t] + recurrent h; c = sigmoid(z_f) c + sigmoid(z_i) act(z_c); h = sigmoid(z_o) act(c), projected
// With CIFG the input gate is absent: sigmoid(z_i) is 1 - sigmoid(z_f).
// Units are arranged in blocks of VW: of_input is [rows][blocks][NV gates][VW], recurrent [blocks][outputs][NV
// gates][VW], peephole [3][blocks][VW], norm and norm_bias [NV gates][blocks][VW].
// projection is [outputs / VW][units][VW], projection_bias [outputs / VW][VW]; padding is zeros.
// scratch is [batch][blocks][VW], the cells' output before the projection.
// With RNN there is one gate, whose activation is the output; NV counts the vectors of units of a block. With HYBRID
// weights are signed bytes, or have WEIGHT_BITS (patches.h); the rows that they are multiplied by are quantized at
// every step, and a stage has the sums and scales of weights (hybrid_conv_2d.cl). bytes and hidden_bytes are memory for
// quantized rows: the output, and the values to project.
// A work-group computes MR batch entries, and its work-items share the blocks: on a CPU one work-item does it all.
// Macros: MR, NV (the number of gates), PANEL = NV * VW, WIDTH (tile.h), HALF_WEIGHTS (of recurrent); RNN, HYBRID,
// CIFG, PEEPHOLE, PROJECTION, LAYER_NORM if there is one; ACTIVATION (common.h) of the cell gate and the cell state,
// whose arguments are low and high.
#ifdef HYBRID
#define T uchar
#define PLAIN
#include "patches.h"
#include "quantize_steps.h"
#include <delegate.quantized.hybrid_product.HybridRow>
#pragma OPENCL FP_CONTRACT ON
#else
#include "tile.h"
#endif
#include "lstm_gates.h"
#include <delegate.recurrent.time_loop.Recurrence>

#ifdef RNN
#define BLOCK_UNITS PANEL
#else
#define BLOCK_UNITS VW
#endif

typedef struct {
    __global const Weight *recurrent;
    __global const float *peephole, *norm, *norm_bias, *projection, *projection_bias;
    float cell_clip, projection_clip, low, high;
#ifdef HYBRID
    __global const int *stage, *projection_stage;
    __global uchar *bytes, *hidden_bytes;
    float scales[MR], hidden_scales[MR];
    int zeros[MR], hidden_zeros[MR];
#endif
} Cell;

INLINE floatv clip(const floatv x, const float bound) { return bound > 0.0f ? clamp_v(x, -bound, bound) : x; }

#ifndef RNN
// The new state of VW cells from their gates' sums.
INLINE floatv new_state(const floatv z[NV], const floatv c, const Cell *cell) {
    const floatv forget = sigmoid_v(z[FORGET]);
#ifdef CIFG
    const floatv input = 1.0f - forget;
#else
    const floatv input = sigmoid_v(z[INPUT]);
#endif
    return clip(forget * c + input * ACTIVATION(z[CELL], cell->low, cell->high), cell->cell_clip);
}

INLINE floatv peep(const floatv z, const floatv c, const Cell *cell, const int gate, const int at,
                   __global const Recurrence *g) {
#ifdef PEEPHOLE
    return z + c * LOAD(cell->peephole + gate * g->blocks * VW + at);
#else
    return z;
#endif
}

INLINE void peep_old_state(floatv z[NV], const floatv c, const Cell *cell, const int at, __global const Recurrence *g) {
#ifndef CIFG
    z[INPUT] = peep(z[INPUT], c, cell, PEEPHOLE_INPUT, at, g);
#endif
    z[FORGET] = peep(z[FORGET], c, cell, PEEPHOLE_FORGET, at, g);
}

#endif

#ifdef RNN
// One block of one row: the outputs from their sums.
OUT_OF_LINE WIDE void finish_block(const floatv sums[NV], __global const float *c_old, __global float *c_new,
                                   __global float *out, const Cell *cell, const int at, __global const Recurrence *g) {
    UNROLL for (int j = 0; j < NV; ++j)
        store_vector(out + at + j * VW, ACTIVATION(sums[j], cell->low, cell->high), g->units - at - j * VW);
}
#elif !defined(LAYER_NORM)
// One block of one row, from the sums of its gates to the new state and the cells' output.
OUT_OF_LINE WIDE void finish_block(const floatv sums[NV], __global const float *c_old, __global float *c_new,
                                   __global float *out, const Cell *cell, const int at, __global const Recurrence *g) {
    floatv z[NV];
    UNROLL for (int gate = 0; gate < NV; ++gate) z[gate] = sums[gate];
    const int count = g->units - at;
    floatv c = load_vector(c_old + at, count);
    peep_old_state(z, c, cell, at, g);
    c = new_state(z, c, cell);
    store_vector(c_new + at, c, count);
    const floatv gate = sigmoid_v(peep(z[OUTPUT], c, cell, PEEPHOLE_OUTPUT, at, g));
    store_vector(out + at, gate * ACTIVATION(c, cell->low, cell->high), count);
}
#endif

#ifdef HYBRID
// Quantizes a row to bytes, of which a work-item writes its own; returns their scale and zero point.
INLINE Step quantize_row(__global const float *x, __global uchar *to, const int count, const int asymmetric,
                         const int first, const int step) {
    Range range = RANGE_OF_ZERO;
    for (int i = 0; i < count; i += VW) widen(&range, load_vector(x + i, count - i));
    const Step by = step_between(lowest(range), highest(range), asymmetric);
    for (int i = first * VW; i < count; i += step * VW)
        store_lanes(to + i, CONVERT(quantized(load_vector(x + i, count - i), by) + 128, uchar), count - i);
    return by;
}

// The sums of one block's gates for MR rows of the batch.
OUT_OF_LINE WIDE void sum_block(floatv sums[MR][NV], __global const float *const of_input[MR],
                                __global const float *const h[MR], const Cell *cell, const int block,
                                __global const Recurrence *g) {
    intv tile[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = 0;
    __global const char *weights = (__global const char *)cell->recurrent;
    weights += (size_t)block * column_bytes(1, g->row_bytes) * PANEL;
    multiply_patches(tile, cell->bytes, weights, g->row_bytes, 1, g->row_bytes, 0);
    UNROLL for (int j = 0; j < NV; ++j) {
        __global const int *stage = cell->stage + (block * NV + j) * HYBRID_ROWS * VW;
        const intv column = LOADI(stage + HYBRID_ROW_SUM * VW);
        const floatv scale = AS_FLOATV(LOADI(stage + HYBRID_ROW_SCALE * VW));
        UNROLL for (int r = 0; r < MR; ++r)
            sums[r][j] = CONVERT(narrowed(tile[r][j]) - column * cell->zeros[r], float) * (scale * cell->scales[r]) +
                         LOAD(of_input[r] + block * PANEL + j * VW);
    }
}
#else
// The sums of one block's gates for MR rows of the batch.
OUT_OF_LINE WIDE void sum_block(floatv sums[MR][NV], __global const float *const of_input[MR],
                                __global const float *const h[MR], const Cell *cell, const int block,
                                __global const Recurrence *g) {
    floatv tile[MR][NV];
    __global const float *rows[MR];
    UNROLL for (int r = 0; r < MR; ++r) {
        rows[r] = h[r];
        UNROLL for (int gate = 0; gate < NV; ++gate) tile[r][gate] = LOAD(of_input[r] + block * PANEL + gate * VW);
    }
    __global const Weight *weights = cell->recurrent + (size_t)block * g->outputs * PANEL;
    multiply_tile(tile, rows, weights, g->outputs, g->outputs);
    UNROLL for (int r = 0; r < MR; ++r)
        UNROLL for (int gate = 0; gate < NV; ++gate) sums[r][gate] = tile[r][gate];
}
#endif

#ifdef LAYER_NORM
// Mean and 1 / standard deviation of one gate's sums (tflite/kernels/internal: MeanStddevNormalization).
INLINE float2 moments(__global const float *sums, const int gate, const int units) {
    float mean = 0.0f, square = 0.0f;
    for (int u = 0; u < units; ++u) mean += sums[u / VW * PANEL + gate * VW + u % VW];
    mean /= units;
    for (int u = 0; u < units; ++u) {
        const float d = sums[u / VW * PANEL + gate * VW + u % VW] - mean;
        square += d * d;
    }
    return (float2)(mean, 1.0f / sqrt(square / units + 1e-8f));
}

INLINE floatv normalized(const floatv z, const float2 m, const Cell *cell, const int gate, const int at,
                         __global const Recurrence *g) {
    const int from = gate * g->blocks * VW + at;
    return (z - m.x) * m.y * LOAD(cell->norm + from) + LOAD(cell->norm_bias + from);
}

// The new states of one row; the peephole is added to the output gate's sums.
OUT_OF_LINE WIDE void normalize_states(__global float *sums, __global const float *c_old, __global float *c_new,
                                       const Cell *cell, const int first, const int step,
                                       __global const Recurrence *g) {
    float2 m[OUTPUT];
    for (int gate = 0; gate < OUTPUT; ++gate) m[gate] = moments(sums, gate, g->units);
    for (int block = first; block < g->blocks; block += step) {
        __global float *own = sums + block * PANEL;
        const int at = block * VW, count = g->units - at;
        floatv z[NV];
        for (int gate = 0; gate < OUTPUT; ++gate)
            z[gate] = normalized(LOAD(own + gate * VW), m[gate], cell, gate, at, g);
        const floatv c = new_state(z, load_vector(c_old + at, count), cell);
        store_vector(c_new + at, c, count);
        STORE(own + OUTPUT * VW, peep(LOAD(own + OUTPUT * VW), c, cell, PEEPHOLE_OUTPUT, at, g));
    }
}

OUT_OF_LINE WIDE void normalize_outputs(__global const float *sums, __global const float *c, __global float *out,
                                        const Cell *cell, const int first, const int step,
                                        __global const Recurrence *g) {
    const float2 m = moments(sums, OUTPUT, g->units);
    for (int block = first; block < g->blocks; block += step) {
        const int at = block * VW, count = g->units - at;
        const floatv z = normalized(LOAD(sums + block * PANEL + OUTPUT * VW), m, cell, OUTPUT, at, g);
        const floatv state = load_vector(c + at, count);
        store_vector(out + at, sigmoid_v(z) * ACTIVATION(state, cell->low, cell->high), count);
    }
}
#endif

#ifdef PROJECTION
// Projects one panel of the output of row r of MR.
OUT_OF_LINE WIDE void project(__global const float *cells, __global float *out, const Cell *cell, const int panel,
                              const int r, __global const Recurrence *g) {
    floatv sum = LOAD(cell->projection_bias + panel * VW);
#ifdef HYBRID
    __global const uchar *bytes = cell->hidden_bytes + r * g->hidden_bytes;
    __global const char *weights = (__global const char *)cell->projection + (size_t)panel * g->hidden_bytes * VW;
    __global const int *stage = cell->projection_stage + panel * HYBRID_ROWS * VW;
    intv product = 0;
    for (int k = 0; k < g->hidden_bytes; k += 4) {
        const intv x = *(__global const int *)(bytes + k);
        product = DOT4(product, x, LOADI(weights + k * VW));
    }
    const floatv scale = AS_FLOATV(LOADI(stage + HYBRID_ROW_SCALE * VW)) * cell->hidden_scales[r];
    sum += CONVERT(product - LOADI(stage + HYBRID_ROW_SUM * VW) * cell->hidden_zeros[r], float) * scale;
#else
    __global const float *weights = cell->projection + (size_t)panel * g->units * VW;
    for (int u = 0; u < g->units; ++u) sum = cells[u] * LOAD(weights + u * VW) + sum;
#endif
    store_vector(out + panel * VW, clip(sum, cell->projection_clip), g->outputs - panel * VW);
}
#endif

KERNEL void lstm(ITEM __global float *of_input, __global const Weight *restrict recurrent,
                 __global const float *restrict peephole, __global const float *restrict norm,
                 __global const float *restrict norm_bias, __global const float *restrict projection,
                 __global const float *restrict projection_bias, __global const float *h_in,
                 __global const float *c_in, __global float *h_out, __global float *c_out, __global float *out,
                 __global float *scratch, __global const Recurrence *restrict g, const float cell_clip,
                 const float projection_clip, const float low, const float high
#ifdef HYBRID
                 , __global const int *restrict stage, __global const int *restrict projection_stage,
                 __global uchar *bytes, __global uchar *hidden_bytes, const int asymmetric
#endif
) {
    Cell cell = {.recurrent = recurrent,
                       .peephole = peephole,
                       .norm = norm,
                       .norm_bias = norm_bias,
                       .projection = projection,
                       .projection_bias = projection_bias,
                       .cell_clip = cell_clip,
                       .projection_clip = projection_clip,
                       .low = low,
                       .high = high};
    const int first = LOCAL_ITEM, step = LOCAL_ITEMS;
    const int b0 = ITEM_INDEX(1) * MR, rows = MIN(MR, g->time.batch - b0);
#ifdef HYBRID
    cell.stage = stage;
    cell.projection_stage = projection_stage;
    cell.bytes = bytes + b0 * g->row_bytes;
    cell.hidden_bytes = hidden_bytes + b0 * g->hidden_bytes;
#endif
    for (int t = 0; t < g->time.steps; ++t) {
        __global float *sums[MR], *to[MR], *cells[MR], *c_new[MR];
        __global const float *h[MR], *c_old[MR];
        for (int r = 0; r < MR; ++r) {
            const int b = MIN(b0 + r, g->time.batch - 1);  // rows past the last are summed but not stored
            sums[r] = of_input + (size_t)(g->time.x_first + t * g->time.x_time + b * g->time.x_batch) * g->blocks * PANEL;
            to[r] = out + g->time.out_first + t * g->time.out_time + b * g->time.out_batch;
            h[r] = t == 0 ? h_in + b * g->outputs : to[r] - g->time.out_time;
            c_old[r] = t == 0 ? c_in + b * g->units : c_out + b * g->units;
            c_new[r] = c_out + b * g->units;
#ifdef PROJECTION
            cells[r] = scratch + b * g->blocks * VW;
#else
            cells[r] = to[r];
#endif
        }
#ifdef HYBRID
        for (int r = 0; r < MR; ++r) {
            const Step by = quantize_row(h[r], cell.bytes + r * g->row_bytes, g->outputs, asymmetric, first, step);
            cell.scales[r] = by.scale;
            cell.zeros[r] = (int)by.zero + 128;
        }
        ALL_ITEMS_DONE;
#endif
        for (int i = first; i < g->blocks; i += step) {
            const int block = t % 2 ? g->blocks - 1 - i : i;  // backwards: the last weights are still in the cache
            floatv z[MR][NV];
            sum_block(z, (__global const float *const __private *)sums, h, &cell, block, g);
            for (int r = 0; r < rows; ++r) {
#ifdef LAYER_NORM
                const int at = block * VW;
                peep_old_state(z[r], load_vector(c_old[r] + at, g->units - at), &cell, at, g);
                for (int gate = 0; gate < NV; ++gate) STORE(sums[r] + block * PANEL + gate * VW, z[r][gate]);
#else
                finish_block(z[r], c_old[r], c_new[r], cells[r], &cell, block * BLOCK_UNITS, g);
#endif
            }
        }
        ALL_ITEMS_DONE;
#ifdef LAYER_NORM
        for (int r = 0; r < rows; ++r) normalize_states(sums[r], c_old[r], c_new[r], &cell, first, step, g);
        ALL_ITEMS_DONE;
        for (int r = 0; r < rows; ++r) normalize_outputs(sums[r], c_new[r], cells[r], &cell, first, step, g);
        ALL_ITEMS_DONE;
#endif
#ifdef PROJECTION
#ifdef HYBRID
        for (int r = 0; r < rows; ++r) {
            __global uchar *to = cell.hidden_bytes + r * g->hidden_bytes;
            const Step by = quantize_row(cells[r], to, g->units, asymmetric, first, step);
            cell.hidden_scales[r] = by.scale;
            cell.hidden_zeros[r] = (int)by.zero + 128;
        }
        ALL_ITEMS_DONE;
#endif
        for (int r = 0; r < rows; ++r)
            for (int panel = first; panel * VW < g->outputs; panel += step)
                project(cells[r], to[r], &cell, panel, r, g);
        ALL_ITEMS_DONE;
#endif
    }
    for (int r = 0; r < rows; ++r) {
        const int b = b0 + r;
        __global const float *last = out + g->time.out_first + (g->time.steps - 1) * g->time.out_time + b * g->time.out_batch;
        for (int i = first; i < g->outputs; i += step) h_out[b * g->outputs + i] = last[i];
    }
}

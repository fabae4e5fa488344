// An LSTM over time steps on a GPU: weights stay in registers, the output of a step is shared through local memory.
//
// A group owns UNITS units of one batch entry. ITEMS_PER_UNIT of its work-items share the depth of each unit, DEPTH
// outputs of the previous step for each work-item, and add up through local memory; the first UNITS work-items then
// compute the gates and keep the cell state. If one group has all units, that is all. With HANDED_ON several groups run
// at once and hand their outputs to each other as words of 64 bits, the step's number above the value, in two sets that
// alternate. A word is read and written at once, so no other order of accesses matters. Step numbers continue from run
// to run, so that words left by an earlier run are never mistaken for new ones. Otherwise there is a launch for every
// step. of_input is [rows][units][NV gates], weights [groups][DEPTH][ITEMS][4 gates], padding is zeros. handed is
// [batch][1 + 2 * units]: the number of steps that earlier runs have counted, then the words. Macros: UNITS,
// ITEMS_PER_UNIT, DEPTH; NV (the number of gates), CIFG, PEEPHOLE, HALF_WEIGHTS; HANDED_ON; ACTIVATION (common.h) of
// the cell gate and the cell state.
#include "common.h"
#include <delegate.recurrent.time_loop.Gate>
#include <delegate.recurrent.time_loop.Peephole>
#include <delegate.recurrent.time_loop.Recurrence>

#define ITEMS (UNITS * ITEMS_PER_UNIT)
#define OF(gate) (gate - (GATES - NV))

#ifdef HALF_WEIGHTS
typedef half Weight;
#define LOAD_WEIGHTS(p) load_halves(p)
#else
typedef float Weight;
#define LOAD_WEIGHTS(p) (*(__global const float4 *)(p))
#endif

#ifdef PEEPHOLE
#define PEEP(gate) (c * peephole[gate * g->units + unit])
#else
#define PEEP(gate) 0.0f
#endif

inline float clip(const float x, const float bound) { return bound > 0.0f ? clamp(x, -bound, bound) : x; }

KERNEL void lstm_local(ITEM __global const float *restrict of_input, __global const Weight *restrict weights,
                       __global const float *restrict peephole, __global const float *h_in,
                       __global const float *c_in, __global float *h_out, __global float *c_out, __global float *out,
                       __global volatile ulong *handed, __local float4 *restrict memory,
                       __global const Recurrence *restrict g, const int first, const int last, const float cell_clip,
                       const float low, const float high) {
    __local float4 *sums = memory;
    __local float *h = (__local float *)(memory + ITEMS);
    const int item = get_local_id(0), b = get_group_id(1), units = g->units;
    const int unit = get_group_id(0) * UNITS + item % UNITS, lane = item / UNITS, at = b * units + unit;
    const bool finishes = item < UNITS && unit < units;
    __global float *to = out + g->time.out_first + b * g->time.out_batch;
    float4 w[DEPTH];
    UNROLL for (int d = 0; d < DEPTH; ++d)
        w[d] = LOAD_WEIGHTS(weights + (((size_t)get_group_id(0) * DEPTH + d) * ITEMS + item) * 4);
    __global const float *before = first == 0 ? h_in + b * units : to + (first - 1) * g->time.out_time;
    for (int k = item; k < ITEMS_PER_UNIT * DEPTH; k += ITEMS) h[k] = k < units ? before[k] : 0.0f;
    float c = 0.0f, y = 0.0f;
    if (finishes) c = first == 0 ? c_in[at] : c_out[at];
#ifdef HANDED_ON
    handed += b * (1 + 2 * units);
    const uint counted = (uint)handed[0];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = first; t < last; ++t) {
        float4 sum = 0.0f;
        UNROLL for (int d = 0; d < DEPTH; ++d) sum = w[d] * h[d * ITEMS_PER_UNIT + lane] + sum;
        sums[item] = sum;
        for (int others = ITEMS / 2; others >= UNITS; others /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < others) sums[item] += sums[item + others];
        }
        if (finishes) {
            const int row = g->time.x_first + t * g->time.x_time + b * g->time.x_batch;
            __global const float *input = of_input + ((size_t)row * units + unit) * NV;
            const float4 s = sums[item];
            const float by_gate[4] = {s.s0, s.s1, s.s2, s.s3};
            const float forget = sigmoid_s(by_gate[OF(GATE_FORGET)] + input[OF(GATE_FORGET)] + PEEP(PEEPHOLE_FORGET));
#ifdef CIFG
            const float admit = 1.0f - forget;
#else
            const float admit = sigmoid_s(by_gate[OF(GATE_INPUT)] + input[OF(GATE_INPUT)] + PEEP(PEEPHOLE_INPUT));
#endif
            const float fresh = ACTIVATION_S(by_gate[OF(GATE_CELL)] + input[OF(GATE_CELL)], low, high);
            c = clip(forget * c + admit * fresh, cell_clip);
            const float gate = sigmoid_s(by_gate[OF(GATE_OUTPUT)] + input[OF(GATE_OUTPUT)] + PEEP(PEEPHOLE_OUTPUT));
            y = gate * ACTIVATION_S(c, low, high);
            to[t * g->time.out_time + unit] = y;
#ifdef HANDED_ON
            handed[1 + (t & 1) * units + unit] = (ulong)(counted + t + 1) << 32 | as_uint(y);
#else
            h[unit] = y;
#endif
        }
#ifdef HANDED_ON
        barrier(CLK_LOCAL_MEM_FENCE);  // a group has handed on its own before it waits for others
        for (int k = item; t + 1 < last && k < units; k += ITEMS) {
            ulong word;
            do word = handed[1 + (t & 1) * units + k];
            while ((uint)(word >> 32) != counted + t + 1);
            h[k] = as_float((uint)word);
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (finishes) {
        c_out[at] = c;
        h_out[at] = y;
    }
#ifdef HANDED_ON
    // All groups have handed on a step that this one has read, so all of them have read the count.
    if (get_group_id(0) == 0 && item == 0) handed[0] = counted + last;
#endif
}

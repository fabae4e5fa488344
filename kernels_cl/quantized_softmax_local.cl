// SOFTMAX of rows of length quantized bytes on a GPU, a group for each row.
// Macros: those of quantized_softmax.h; ITEMS of a group, a power of two.
#include "quantized_softmax.h"
#include "combine.h"

KERNEL void quantized_softmax_local(ITEM __global const X *restrict x, __global const int *restrict exponentials,
                                    __global T *restrict y, __local long *restrict memory, const int length,
                                    const int low, const int high) {
    const int item = get_local_id(0);
    x += (size_t)get_group_id(0) * length;
    y += (size_t)get_group_id(0) * length;
    long most = x[0], sum = 0;
    for (int i = item; i < length; i += ITEMS) most = MAX(most, (long)x[i]);
    COMBINE(MAX, most, most)
    for (int i = item; i < length; i += ITEMS) sum += divide_by_power(exponentials[most - x[i]], INTEGER_BITS);
    COMBINE(ADD, sum, sum)
    const Division by = division_by(sum);
    for (int i = item; i < length; i += ITEMS) y[i] = divided(exponentials[most - x[i]], by, low, high);
}

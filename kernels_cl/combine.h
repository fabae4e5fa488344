// Sums and extremes of a group.
// Macros: ITEMS of a group, a power of two.

// Combines all items' values by OP, for every item; `item` is its number, `memory` local memory for ITEMS values.
#define COMBINE(OP, value, result)                                              \
    {                                                                           \
        memory[item] = value;                                                   \
        for (int others = ITEMS / 2; others > 0; others /= 2) {                 \
            barrier(CLK_LOCAL_MEM_FENCE);                                       \
            if (item < others) memory[item] = OP(memory[item + others], memory[item]); \
        }                                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                           \
        result = memory[0];                                                     \
        barrier(CLK_LOCAL_MEM_FENCE);                                           \
    }

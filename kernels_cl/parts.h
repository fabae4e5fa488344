// Sums whose depth is shared by groups: every group but the last to arrive leaves its parts, and the last one adds them
// up in order. For kernels with float4 sums[rows][columns] in each of ITEMS work-items, of which this one is `item`;
// parts holds the groups' parts, arrived a count for each tile, which the last group resets to 0, memory an int. Macro:
// PART, the type of four sums, if it is not float4.
#ifndef PART
#define PART float4
#endif

#define ADD_UP_PARTS(rows, columns, tile, tiles, part, count)                                                          \
    {                                                                                                                  \
        __global volatile PART *from =                                                                                 \
            (__global volatile PART *)parts + (size_t)(tile) * (rows) * (columns) * ITEMS + item;                      \
        __global volatile PART *own = from + (size_t)(part) * (tiles) * (rows) * (columns) * ITEMS;                    \
        UNROLL for (int i = 0; i < (rows); ++i)                                                                        \
            UNROLL for (int j = 0; j < (columns); ++j) own[(i * (columns) + j) * ITEMS] = sums[i][j];                  \
        DEVICE_FENCE;                                                                                                  \
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);                                                           \
        __local int *place = (__local int *)memory;                                                                    \
        if (item == 0) *place = atomic_inc(arrived + (tile));                                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
        if (*place != (count) - 1) return;                                                                             \
        DEVICE_FENCE;                                                                                                  \
        if (item == 0) arrived[tile] = 0;                                                                              \
        UNROLL for (int i = 0; i < (rows); ++i)                                                                        \
            UNROLL for (int j = 0; j < (columns); ++j) sums[i][j] = from[(i * (columns) + j) * ITEMS];                 \
        for (int other = 1; other < (count); ++other) {                                                                \
            from += (size_t)(tiles) * (rows) * (columns) * ITEMS;                                                      \
            UNROLL for (int i = 0; i < (rows); ++i)                                                                    \
                UNROLL for (int j = 0; j < (columns); ++j) sums[i][j] += from[(i * (columns) + j) * ITEMS];            \
        }                                                                                                              \
    }

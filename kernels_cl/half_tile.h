// Tiles of products in halves (half_unit.h), in place of the sums of local_tile.h where all of them are finite: x and the
// weights are rounded to halves on their way to local memory, and products are added up in halves, HALF_STEPS of the
// depth, and then in float32.
//
// A sum of so few products that is beyond the range of halves leaves an infinite sum, or NaN: then the group computes its
// tile again in float32, of x as it is. The step of the depth is twice that of floats, in as much local memory.
// Weights are packed as halves, [columns / BN][depth, padded to HALF_BK][BN], unless RIGHT_ROWS or RIGHT_COLUMNS. They
// were divided by p->scale, so that products are large: sums that are too large are found, those too small are not. What
// RIGHT_ROWS and RIGHT_COLUMNS load is divided here.
// Macros: those of local_tile.h and half_unit.h; BK, HALF_STEPS, which divides 2 BK.
#define HALF_BK (2 * BK)
#define HALF_LEFT_LOADS (BM * HALF_BK / 4 / ITEMS)
#define HALF_RIGHT_LOADS (BN * HALF_BK / 4 / ITEMS)
#define HALF_DEPTH(item) (((item) & (HALF_BK / 4 - 1)) * 4)
#define HALF_LINE(item, i) ((item) / (HALF_BK / 4) + (i) * (ITEMS / (HALF_BK / 4)))
#ifdef RIGHT_COLUMNS
#define HALF_RIGHT_AT(item, i) HALF_DEPTH(item), HALF_LINE(item, i)
#else
#define HALF_RIGHT_AT(item, i) ((item) + (i) * ITEMS) / (BN / 4), ((item) + (i) * ITEMS) % (BN / 4) * 4
#endif
#if defined(LITECL_FEW_REGISTERS) && defined(WINDOW_WIDTH)
#define SOME_STEPS _Pragma("unroll 2")  // more of them spill on Intel's GPUs
#elif defined(LITECL_FEW_REGISTERS)
#define SOME_STEPS _Pragma("unroll 4")
#else
#define SOME_STEPS UNROLL
#endif
#if defined(RIGHT_ROWS) || defined(RIGHT_COLUMNS)
typedef float4 HalfLoad;
#define HALVES_OF_LOAD(w) halves_of((w) * (1.0f / scale))
#else
typedef ushort4 HalfLoad;
#define HALVES_OF_LOAD(w) (w)
#endif

// Four weights of the matrix's row k + depth from column n0 + n on, or of its columns' where these are lines.
inline HalfLoad load_right_halves(__global const Packed *weights, const int depth, const int n, const int k,
                                  const int end, const int n0, __global const LocalProduct *p) {
#if defined(RIGHT_COLUMNS)
    return n0 + n < p->columns && k + depth < end ? LOAD4(weights + (size_t)(n0 + n) * p->depth + k + depth) : (float4)(0);
#elif defined(RIGHT_ROWS)
    return n0 + n < p->columns && k + depth < end ? LOAD4(weights + (size_t)(k + depth) * p->columns + n0 + n) : (float4)(0);
#else
    return *(__global const ushort4 *)(weights + (size_t)(k + depth) * BN + n);
#endif
}

inline void store_right_halves(__local ushort *right, const int depth, const int n, const ushort4 w) {
    __local ushort *to = right + depth * RIGHT_STEP + n;
#ifdef RIGHT_COLUMNS
    to[0] = w.s0;
    to[RIGHT_STEP] = w.s1;
    to[2 * RIGHT_STEP] = w.s2;
    to[3 * RIGHT_STEP] = w.s3;
#else
    *(__local ushort4 *)to = w;
#endif
}

// The sums of a work-item, of x and the weights of a slice; returns whether all sums of the group are finite.
inline bool add_up_halves(float4 sums[SUM_ROWS][SUM_FOURS], __global const float *x, __global const Packed *weights,
                          const Tile tile, __local float4 *memory, __global const LocalProduct *p, const Around *around) {
    __local ushort *left = (__local ushort *)memory, *right = left + HALF_BK * LEFT_STEP;
    __local int *is_infinite = (__local int *)(right + HALF_BK * RIGHT_STEP);
    const int item = get_local_id(0), depth = HALF_DEPTH(item);
    const float scale = p->scale;
    if (item == 0) *is_infinite = 0;
#if !defined(RIGHT_ROWS) && !defined(RIGHT_COLUMNS)
    weights += (size_t)get_group_id(0) * p->panel_depth * BN;
#endif
    Row rows[HALF_LEFT_LOADS];
    float4 next_left[HALF_LEFT_LOADS];
    HalfLoad next_right[HALF_RIGHT_LOADS];
    UNROLL for (int i = 0; i < HALF_LEFT_LOADS; ++i) {
        rows[i] = row_of(tile.m + HALF_LINE(item, i), p);
        next_left[i] = load_left(x, rows[i], tile.start + depth, tile.end, p, around);
    }
    UNROLL for (int i = 0; i < HALF_RIGHT_LOADS; ++i)
        next_right[i] = load_right_halves(weights, HALF_RIGHT_AT(item, i), tile.start, tile.end, tile.n, p);
    UNROLL for (int i = 0; i < TM; ++i)
        UNROLL for (int j = 0; j < TN / 4; ++j) sums[i][j] = 0;
    const int own_row = item / ACROSS, own_column = item % ACROSS;
    for (int k = tile.start; k < tile.end; k += HALF_BK) {
        barrier(CLK_LOCAL_MEM_FENCE);  // all have read what is overwritten now
        UNROLL for (int i = 0; i < HALF_LEFT_LOADS; ++i) {
            const ushort4 y = halves_of(next_left[i]);
            __local ushort *to = left + depth * LEFT_STEP + HALF_LINE(item, i);
            to[0] = y.s0;
            to[LEFT_STEP] = y.s1;
            to[2 * LEFT_STEP] = y.s2;
            to[3 * LEFT_STEP] = y.s3;
        }
        UNROLL for (int i = 0; i < HALF_RIGHT_LOADS; ++i)
            store_right_halves(right, HALF_RIGHT_AT(item, i), HALVES_OF_LOAD(next_right[i]));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + HALF_BK < tile.end) {
            UNROLL for (int i = 0; i < HALF_LEFT_LOADS; ++i)
                next_left[i] = load_left(x, rows[i], k + HALF_BK + depth, tile.end, p, around);
            UNROLL for (int i = 0; i < HALF_RIGHT_LOADS; ++i)
                next_right[i] = load_right_halves(weights, HALF_RIGHT_AT(item, i), k + HALF_BK, tile.end, tile.n, p);
        }
        _Pragma("unroll 1")
        for (int first = 0; first < HALF_BK; first += HALF_STEPS) {
            Halves own[TM][TN / 4];
            UNROLL for (int i = 0; i < TM; ++i)
                UNROLL for (int j = 0; j < TN / 4; ++j) own[i][j] = 0.0f;
            SOME_STEPS for (int step = first; step < first + HALF_STEPS; ++step) {
                Halves a[TM / 4], b[TN / 4];
                UNROLL for (int i = 0; i < TM / 4; ++i)
                    a[i] = halves_at(left + step * LEFT_STEP + PLACE(own_row, BM / TM, 4 * i));
                UNROLL for (int j = 0; j < TN / 4; ++j)
                    b[j] = halves_at(right + step * RIGHT_STEP + PLACE(own_column, ACROSS, 4 * j));
                UNROLL for (int i = 0; i < TM / 4; ++i)
                    UNROLL for (int j = 0; j < TN / 4; ++j) {
                        own[4 * i][j] = ROUNDED(a[i].s0 * b[j] + own[4 * i][j]);
                        own[4 * i + 1][j] = ROUNDED(a[i].s1 * b[j] + own[4 * i + 1][j]);
                        own[4 * i + 2][j] = ROUNDED(a[i].s2 * b[j] + own[4 * i + 2][j]);
                        own[4 * i + 3][j] = ROUNDED(a[i].s3 * b[j] + own[4 * i + 3][j]);
                    }
            }
            UNROLL for (int i = 0; i < TM; ++i)
                UNROLL for (int j = 0; j < TN / 4; ++j) sums[i][j] = FLOATS_OF(own[i][j]) * scale + sums[i][j];
        }
    }
    bool infinite = false;
    UNROLL for (int i = 0; i < TM; ++i)
        UNROLL for (int j = 0; j < TN / 4; ++j) infinite |= any_infinite(sums[i][j]);
    if (infinite) *is_infinite = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *is_infinite == 0;
}

// Tiles of products on GPUs: a group computes BM x BN sums, TM x TN in each work-item, with operands in local memory.
//
// A group loads BM x BK of x and BK x BN of the weights, 16 bytes at a time, one step of the depth ahead. x is [rows,
// depth]; or with GATHER an image, of which a row is the patch of an output pixel; or with WINDOW_HEIGHT and
// WINDOW_WIDTH an image whose depthwise convolution with taps, with a bias and a clamp, gives the rows. Weights are
// packed, [columns / BN][depth, padded to BK][BN]; with RIGHT_ROWS they are a matrix [depth, columns], with
// RIGHT_COLUMNS [columns, depth]. All loads are aligned to 16 bytes, except that SINGLE loads x element by element.
//
// A kernel file defines first: Element, of x, and Four, a vector of four; Packed, of the weights, and LOAD_PACKED,
// which loads four as a Four; MULTIPLY_ADD(sum, x, w), for an Element x; with ROW_SUMS, ADD_ROW(total, x), for a Four x
// of a row, whose total times a factor is added to all its sums.
// Macros: BM, BN, TM, TN, PARTS, GATHER, WINDOW_HEIGHT, WINDOW_WIDTH, RIGHT_ROWS, RIGHT_COLUMNS, SINGLE, ROW_SUMS.
#include <delegate.gpu.local_product.Slice>
#include <delegate.gpu.local_product.LocalProduct>

#define BK 16
#define ACROSS (BN / TN)
#define ITEMS (BM / TM * ACROSS)
#define LEFT_STEP (BM + 4)  // neighbours in the depth lie in other banks
#define RIGHT_STEP (BN + 4)
#define LEFT_LOADS (BM * BK / 4 / ITEMS)
#define RIGHT_LOADS (BN * BK / 4 / ITEMS)
#define LOAD4(p) (*(__global const Four *)(p))

// A row of x: its offset and, for a patch, its corner in the image, which lies outside if there is no such row.
typedef struct {
    int at, top, left;
} Row;

inline Row row_of(const int m, __global const LocalProduct *p) {
#if defined(GATHER) || defined(WINDOW_WIDTH)
    __global const Geometry *g = &p->window;
    const int line = m / g->out_width, image = line / g->out_height;
    const int y = line - image * g->out_height, x = m - line * g->out_width;
    const int top = y * g->stride_y - g->pad_y, left = x * g->stride_x - g->pad_x;
    return (Row){image * g->height * g->width * g->channels, m < p->rows ? top : INT_MIN / 2, left};
#else
    return (Row){MIN(m, p->rows - 1) * p->depth, 0, 0};
#endif
}

// The value of elements outside the image, and of those past the depth; the clamp of a window.
typedef struct {
    Element outside;
#ifdef ROW_SUMS
    Element factor;
#endif
#ifdef WINDOW_WIDTH
    __global const float *taps, *bias;
    float low, high;
#endif
} Around;

#ifdef WINDOW_WIDTH
#if WINDOW_HEIGHT * WINDOW_WIDTH > 9  // the loads of all rows at once spill on AMD's GPUs
#define WINDOW_UNROLL _Pragma("unroll 1")
#else
#define WINDOW_UNROLL UNROLL
#endif

// Four elements of a row, from k on, that the window computes from an image.
inline Four load_left(__global const Element *x, const Row row, const int k, const int end, __global const LocalProduct *p,
                      const Around *around) {
    __global const Geometry *g = &p->window;
    if (k >= end) return 0.0f;
    Four sum = LOAD4(around->bias + k);
    WINDOW_UNROLL for (int ky = 0; ky < WINDOW_HEIGHT; ++ky) {
        const int iy = row.top + ky * g->dilation_y;
        UNROLL for (int kx = 0; kx < WINDOW_WIDTH; ++kx) {
            const int ix = row.left + kx * g->dilation_x;
            const bool inside = (uint)iy < (uint)g->height && (uint)ix < (uint)g->width;
            const Four pixel = inside ? LOAD4(x + row.at + (iy * g->width + ix) * g->channels + k) : (Four)(0.0f);
            sum = pixel * LOAD4(around->taps + (ky * WINDOW_WIDTH + kx) * g->channels + k) + sum;
        }
    }
    return clamp_v(sum, around->low, around->high);
}
#else
#ifdef SINGLE
#define Loaded Element
#else
#define Loaded Four
#endif

// One load of a row from k on; past the end of the depth, any value.
inline Loaded load_at(__global const Element *x, const Row row, const int k, const int end,
                      __global const LocalProduct *p, const Around *around) {
#ifdef GATHER
    __global const Geometry *g = &p->window;
    const int tap = k / g->group_channels, channel = k - tap * g->group_channels;
    const int ky = tap / g->kernel_width, kx = tap - ky * g->kernel_width;
    const int iy = row.top + ky * g->dilation_y, ix = row.left + kx * g->dilation_x;
    if (k >= end || (uint)iy >= (uint)g->height || (uint)ix >= (uint)g->width) return (Loaded)(around->outside);
    return *(__global const Loaded *)(x + row.at + (iy * g->width + ix) * g->channels + channel);
#else
    return k < end ? *(__global const Loaded *)(x + row.at + k) : (Loaded)(around->outside);
#endif
}

// Four elements of a row from k on.
inline Four load_left(__global const Element *x, const Row row, const int k, const int end, __global const LocalProduct *p,
                      const Around *around) {
#ifdef SINGLE
    return (Four)(load_at(x, row, k, end, p, around), load_at(x, row, k + 1, end, p, around),
                  load_at(x, row, k + 2, end, p, around), load_at(x, row, k + 3, end, p, around));
#else
    return load_at(x, row, k, end, p, around);
#endif
}
#endif

#ifdef RIGHT_COLUMNS
#define RIGHT_LINE(i) (item / (BK / 4) + (i) * (ITEMS / (BK / 4)))
#define RIGHT_DEPTH ((item & (BK / 4 - 1)) * 4)
#else
#define RIGHT_LINE(i) ((item + (i) * ITEMS) / (BN / 4))
#define RIGHT_COLUMN(i) ((item + (i) * ITEMS) % (BN / 4) * 4)
#endif

// The i-th of a work-item's loads of weights, for the step of the depth at k.
inline Four load_right(__global const Packed *weights, const int item, const int i, const int k, const int end,
                       const int n0, __global const LocalProduct *p) {
#if defined(RIGHT_COLUMNS)
    const int n = n0 + RIGHT_LINE(i), at = k + RIGHT_DEPTH;
    return n < p->columns && at < end ? LOAD_PACKED(weights + (size_t)n * p->depth + at) : (Four)(0);
#elif defined(RIGHT_ROWS)
    const int n = n0 + RIGHT_COLUMN(i), at = k + RIGHT_LINE(i);
    return n < p->columns && at < end ? LOAD_PACKED(weights + (size_t)at * p->columns + n) : (Four)(0);
#else
    return LOAD_PACKED(weights + (size_t)(k + RIGHT_LINE(i)) * BN + RIGHT_COLUMN(i));
#endif
}

// A group's tile: its first row and column, the number of its product, and its part of the depth.
typedef struct {
    int m, n, number, part, start, end;
} Tile;

inline Tile tile_of(__global const LocalProduct *p) {
    const int m = get_group_id(1) * BM, n = get_group_id(0) * BN;
#ifdef PARTS
    const int part = get_group_id(2) % p->parts, start = part * p->part_depth;
    return (Tile){m, n, get_group_id(2) / p->parts, part, start, MIN(start + p->part_depth, p->depth)};
#else
    return (Tile){m, n, get_group_id(2), 0, 0, p->depth};
#endif
}

#define SUM_ROWS TM
#define SUM_FOURS (TN / 4)

// The row (or column) in the tile of a work-item's sum i; `others` work-items share the fours in turn.
#define PLACE(own, others, i) ((own) * 4 + (i) / 4 * (others) * 4 + (i) % 4)

// The position in a step of the first of a work-item's loads of x.
#define OWN_LINE (item / (BK / 4))
#define OWN_DEPTH ((item & (BK / 4 - 1)) * 4)

// Computes a work-item's sums from x and the weights of a slice.
inline void add_up(Four sums[SUM_ROWS][SUM_FOURS], __global const Element *x, __global const Packed *weights,
                   const Tile tile, __local Four *memory, __global const LocalProduct *p, const Around *around) {
    __local Element *left = (__local Element *)memory, *right = left + BK * LEFT_STEP;
    const int item = get_local_id(0);
#if !defined(RIGHT_ROWS) && !defined(RIGHT_COLUMNS)
    weights += (size_t)get_group_id(0) * p->panel_depth * BN;
#endif
    Row rows[LEFT_LOADS];
    Four next_left[LEFT_LOADS], next_right[RIGHT_LOADS];
    UNROLL for (int i = 0; i < LEFT_LOADS; ++i) {
        rows[i] = row_of(tile.m + OWN_LINE + i * (ITEMS / (BK / 4)), p);
        next_left[i] = load_left(x, rows[i], tile.start + OWN_DEPTH, tile.end, p, around);
    }
    UNROLL for (int i = 0; i < RIGHT_LOADS; ++i)
        next_right[i] = load_right(weights, item, i, tile.start, tile.end, tile.n, p);
    UNROLL for (int i = 0; i < TM; ++i)
        UNROLL for (int j = 0; j < TN / 4; ++j) sums[i][j] = 0;
#ifdef ROW_SUMS
    Element totals[LEFT_LOADS];
    UNROLL for (int i = 0; i < LEFT_LOADS; ++i) totals[i] = 0;
#endif
    const int own_row = item / ACROSS, own_column = item % ACROSS;
    for (int k = tile.start; k < tile.end; k += BK) {
        barrier(CLK_LOCAL_MEM_FENCE);  // all have read what is overwritten now
        UNROLL for (int i = 0; i < LEFT_LOADS; ++i) {
            __local Element *to = left + OWN_DEPTH * LEFT_STEP + OWN_LINE + i * (ITEMS / (BK / 4));
            to[0] = next_left[i].s0;
            to[LEFT_STEP] = next_left[i].s1;
            to[2 * LEFT_STEP] = next_left[i].s2;
            to[3 * LEFT_STEP] = next_left[i].s3;
#ifdef ROW_SUMS
            ADD_ROW(totals[i], next_left[i]);
#endif
        }
        UNROLL for (int i = 0; i < RIGHT_LOADS; ++i) {
#ifdef RIGHT_COLUMNS
            __local Element *to = right + RIGHT_DEPTH * RIGHT_STEP + RIGHT_LINE(i);
            to[0] = next_right[i].s0;
            to[RIGHT_STEP] = next_right[i].s1;
            to[2 * RIGHT_STEP] = next_right[i].s2;
            to[3 * RIGHT_STEP] = next_right[i].s3;
#else
            *(__local Four *)(right + RIGHT_LINE(i) * RIGHT_STEP + RIGHT_COLUMN(i)) = next_right[i];
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + BK < tile.end) {
            UNROLL for (int i = 0; i < LEFT_LOADS; ++i)
                next_left[i] = load_left(x, rows[i], k + BK + OWN_DEPTH, tile.end, p, around);
            UNROLL for (int i = 0; i < RIGHT_LOADS; ++i)
                next_right[i] = load_right(weights, item, i, k + BK, tile.end, tile.n, p);
        }
        _Pragma("unroll 4")  // more of them spill on AMD's GPUs
        for (int step = 0; step < BK; ++step) {
            Four a[TM / 4], b[TN / 4];
            UNROLL for (int i = 0; i < TM / 4; ++i)
                a[i] = *(__local const Four *)(left + step * LEFT_STEP + PLACE(own_row, BM / TM, 4 * i));
            UNROLL for (int j = 0; j < TN / 4; ++j)
                b[j] = *(__local const Four *)(right + step * RIGHT_STEP + PLACE(own_column, ACROSS, 4 * j));
            UNROLL for (int i = 0; i < TM / 4; ++i)
                UNROLL for (int j = 0; j < TN / 4; ++j) {
                    MULTIPLY_ADD(sums[4 * i][j], a[i].s0, b[j]);
                    MULTIPLY_ADD(sums[4 * i + 1][j], a[i].s1, b[j]);
                    MULTIPLY_ADD(sums[4 * i + 2][j], a[i].s2, b[j]);
                    MULTIPLY_ADD(sums[4 * i + 3][j], a[i].s3, b[j]);
                }
        }
    }
#ifdef ROW_SUMS
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < LEFT_LOADS; ++i) left[((item >> 2) + i * (ITEMS / 4)) * 4 + (item & 3)] = totals[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < TM; ++i) {
        const Four total = *(__local const Four *)(left + PLACE(own_row, BM / TM, i) * 4);
        UNROLL for (int j = 0; j < TN / 4; ++j)
            sums[i][j] += (total.s0 + total.s1 + total.s2 + total.s3) * around->factor;
    }
#endif
}

// Runs code for every four sums of a work-item: row m, from column n on.
#define FOR_SUMS(...)                                                                \
    UNROLL for (int i = 0; i < TM; ++i) {                                            \
        const int m = tile.m + PLACE(get_local_id(0) / ACROSS, BM / TM, i);          \
        if (m >= p->rows) continue;                                                  \
        UNROLL for (int j = 0; j < TN / 4; ++j) {                                    \
            const int n = tile.n + PLACE(get_local_id(0) % ACROSS, ACROSS, 4 * j);   \
            __VA_ARGS__;                                                             \
        }                                                                            \
    }

// Returns from the kernel unless this group is the last of those that share its tile's depth, which gets the total
// sums.
#ifdef PARTS
#define ADD_UP_TILE                                                                                               \
    const int item = get_local_id(0);                                                                             \
    const int at = (tile.number * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0);     \
    const int tiles = get_num_groups(0) * get_num_groups(1) * (get_num_groups(2) / p->parts);                     \
    ADD_UP_PARTS(SUM_ROWS, SUM_FOURS, at, tiles, tile.part, p->parts)
#else
#define ADD_UP_TILE
#endif

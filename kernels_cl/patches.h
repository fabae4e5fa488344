// Products of patches, rows of bytes that a work-item has gathered (gather_patches.h), with weights.
//
// weights are [groups][columns / PANEL][row_bytes / 4][PANEL][4], or [2] words, zeros past the last column and past the
// depth of a patch.
// Weights of WEIGHT_BITS, 4 or 2, are PACKED to a byte: each byte has the integers at its position in PACKED
// consecutive fours of the row, the first in its lowest bits, and every run is padded to whole fours of such bytes.
// They are multiplied in the upper bits of a byte, so that sums are 2^(8 - WEIGHT_BITS) times too large (`narrowed`).
// PAIRED: every four is [2][PANEL][2], for rows that are widened to words.
// ACROSS, for one row and few columns, or where one instruction adds up a vector's products: lanes are elements of a
// row. weights are then [columns][row_bytes], rows padded with zeros to whole vectors.
// PLAIN, for rows that are multiplied where they are (or the single row of a convolution): their bits are flipped then,
// not when they are gathered. SIGNED_ROW, with PLAIN: bytes are signed when they are multiplied, so that sums are less
// by 128 times the sum of a column's weights.
// ADJACENT: the taps of a run, if each pixel's window begins one pixel after the last one's.
// Macros: MR, NV, PANEL; PAIRED; ACROSS; ADJACENT; WEIGHT_BITS; PLAIN; SIGNED_ROW; T and WORDS (quantized.h).
#include "quantized.h"
#include <delegate.matmul.patches.Gather>

#ifndef WEIGHT_BITS
#define WEIGHT_BITS 8
#endif
#define PACKED (8 / WEIGHT_BITS)
#ifdef PLAIN
#define GROUP_ITEM 0
#define RUNS(p) 1
#else
#define GROUP_ITEM ITEM_INDEX(2)
#define RUNS(p) ((p)->runs)
#endif
#if WEIGHT_BITS == 8
#define UPPER(w, i) (w)
#define narrowed(sum) (sum)
#else
#define UPPER_MASK (WEIGHT_BITS == 4 ? (int)0xf0f0f0f0 : (int)0xc0c0c0c0)
#define UPPER(w, i) ((w) << (8 - WEIGHT_BITS * ((i) + 1)) & UPPER_MASK)
#define narrowed(sum) ((sum) >> (8 - WEIGHT_BITS))
#endif

// A work-item's share: pixels [m_first, m_last) x columns [n_first, n_last) of a group, whose columns are padded to
// group_panels. first_row: the offset of its own memory. size: of x, from the group's first channel on.
typedef struct {
    int m_first, m_last, n_first, n_last, group_panels, size;
    size_t first_row;
} Share;

INLINE Share share_of(__global const Gather *p, const int row_item, const int column_item, const int group) {
    __global const Geometry *g = &p->window;
    Share s;
#ifdef PLAIN
    s.m_first = 0, s.m_last = 1, s.group_panels = 0, s.size = p->size, s.first_row = 0;
    s.n_first = column_item * p->item_columns, s.n_last = MIN(s.n_first + p->item_columns, g->group_columns);
#else
    const int places = PLACES_OF(g);
    const int pixels = p->line_pixels == p->line_width ? places : places / p->line_width * p->line_pixels;
    s.m_first = row_item * p->item_rows, s.m_last = MIN(s.m_first + p->item_rows, pixels);
    s.n_first = column_item * p->item_columns, s.n_last = MIN(s.n_first + p->item_columns, g->group_columns);
    if (s.n_first >= s.n_last) s.m_last = 0;  // a work-item that only fills up a group has no memory for rows
    s.group_panels = (g->group_columns + PANEL - 1) / PANEL * PANEL;
    s.size = p->size - group * p->group_x;
    s.first_row = 0;
    if (row_item | column_item | group) {
        const int row_items = (pixels + p->item_rows - 1) / p->item_rows;
        const int column_items = (g->group_columns + p->item_columns - 1) / p->item_columns;
        s.first_row = (size_t)((group * column_items + column_item) * row_items + row_item) * p->item_bytes;
    }
#endif
    return s;
}

// MR pixels from m0 on, counted like line_pixels: the first one's position in the output, and how many exist.
typedef struct {
    int first, count;
} Pixels;

INLINE Pixels pixels_at(__global const Gather *p, const int m0) {
#ifdef PLAIN
    return (Pixels){0, 1};
#else
    const int line = m0 ? m0 / p->line_pixels : 0, column = m0 - line * p->line_pixels;
    return (Pixels){line * p->line_width + column, MIN(MR, p->line_width - column)};
#endif
}

#ifdef WORDS
#define DOT DOT2
#else
#define DOT DOT4
#endif

// Bytes of a column's weights, for rows of `runs` runs of run_bytes.
INLINE int column_bytes(const int runs, const int run_bytes) {
    return runs * ((run_bytes + 4 * PACKED - 1) / (4 * PACKED)) * 4;
}

// The weights of the columns from n0 on.
INLINE __global const char *weights_at(__global const char *weights, const int bytes, const int n0) {
    return weights + (size_t)(n0 / PANEL) * PANEL * bytes + n0 % PANEL * 4;
}

// The bits to flip in gathered bytes: rows are unsigned bytes, or signed ones if those are multiplied.
#ifdef SIGNED_ROW
#define PART SIGNED_DOT4
#define REST(rest, w) (rest)
#define GATHER_FLIP (FLIP ^ 128)
#elif defined(PART4) && !defined(WORDS)
#define PART PART4
#define REST REST4
#define GATHER_FLIP (FLIP ^ 128)
#else
#define PART DOT
#define REST(rest, w) (rest)
#define GATHER_FLIP FLIP
#endif
// The bits to flip in rows when they are multiplied, in four bytes; and in rows whose unsigned bytes are added up.
#ifdef PLAIN
#define ROW_FLIP ((int)(GATHER_FLIP * 0x01010101u))
#define SUM_FLIP FLIP
#else
#define ROW_FLIP 0
#define SUM_FLIP (FLIP ^ GATHER_FLIP)
#endif

// tile[r][j] += four elements of row r times the i-th of the packed weights w, without the term of rest[j], which is
// the same for all rows.
INLINE void multiply_fours(intv tile[MR][NV], intv rest[NV], __global const uchar *restrict rows, const intv w[NV],
                           const int row_step, const int i) {
    UNROLL for (int j = 0; j < NV; ++j) rest[j] = REST(rest[j], UPPER(w[j], i));
    UNROLL for (int r = 0; r < MR; ++r) {
        const intv x = (intv)*(__global const int_u *)(rows + r * row_step + 4 * i) ^ ROW_FLIP;
        UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = PART(tile[r][j], x, UPPER(w[j], i));
    }
}

#if defined(DOTS_BY_LANE) && WEIGHT_BITS == 8 && !defined(WORDS)
#define BY_LANE 1
// Multiplies the first run_bytes / 16 * 16 bytes of a run, VW fours of each row at a time; returns the end of the
// weights.
INLINE __global const char *multiply_lanes(intv tile[MR][NV], intv rest[NV], __global const uchar *restrict rows,
                                           __global const char *restrict weights, const int row_step,
                                           const int run_bytes) {
    for (int k = 0; k + 4 * VW <= run_bytes; k += 4 * VW) {
        intv x[MR];
        UNROLL for (int r = 0; r < MR; ++r) x[r] = LOADB(rows + r * row_step + k) ^ ROW_FLIP;
        UNROLL for (int i = 0; i < VW; ++i, weights += PANEL * 4)
            UNROLL for (int j = 0; j < NV; ++j) {
                const intv w = LOADI(weights + j * VW * 4);
                rest[j] = REST(rest[j], w);
                UNROLL for (int r = 0; r < MR; ++r) tile[r][j] = PART(tile[r][j], (intv)x[r][i], w);
            }
    }
    return weights;
}
#endif

// Sums of fours; the two halves of each are in adjacent lanes of pairs.
#define SUM_PAIRS(pairs) ((intv)((pairs)[0].even, (pairs)[1].even) + (intv)((pairs)[0].odd, (pairs)[1].odd))

#if MR == 1 && VW == 8 && defined(MULTIPLY_PAIRS) && !defined(SIGNED_ROW) && WEIGHT_BITS == 8 && !defined(WORDS)
#define WIDENED_ROW 1
// tile[0][j] += the row times weights, which one instruction widens to words, as no other row shares them: the four of
// a column are in two adjacent lanes of pairs.
INLINE void multiply_widened(intv tile[MR][NV], __global const uchar *restrict row,
                             __global const char *restrict weights, const int runs, const int run_bytes,
                             const int run_step) {
    typedef char Columns __attribute__((vector_size(16), aligned(1)));
    typedef uchar Fours __attribute__((vector_size(16)));
    typedef ushort UnsignedWords __attribute__((vector_size(32)));
    intv pairs[NV][2];
    UNROLL for (int j = 0; j < NV; ++j) pairs[j][0] = pairs[j][1] = 0;
    for (int run = 0; run < runs; ++run, row += run_step)
        for (int k = 0; k + 4 <= run_bytes; k += 4, weights += PANEL * 4) {
            const uint4 four = *(__global const int_u *)(row + k) ^ ROW_FLIP;
            const UnsignedWords x = __builtin_convertvector(__builtin_astype(four, Fours), UnsignedWords);
            UNROLL for (int j = 0; j < NV; ++j)
                UNROLL for (int h = 0; h < 2; ++h) {
                    const Columns columns = *(__global const Columns *)(weights + (2 * j + h) * 16);
                    const words_of_intv w = __builtin_convertvector(columns, words_of_intv);
                    pairs[j][h] += MULTIPLY_PAIRS(AS_WORDS(x), w);
                }
        }
    UNROLL for (int j = 0; j < NV; ++j) tile[0][j] += SUM_PAIRS(pairs[j]);
}
#endif

#if defined(ADJACENT) && WEIGHT_BITS == 8
#define SHARES_LOADS 1
// The same for adjacent pixels and runs of ADJACENT taps of row_step bytes: what a pixel reads at one tap, the next
// pixel reads at the tap before, so that it is loaded once.
INLINE void multiply_adjacent(intv tile[MR][NV], __global const uchar *restrict rows,
                              __global const char *restrict weights, const int row_step, const int runs,
                              const int run_step) {
    const int tap = row_step * PANEL;
    for (int run = 0; run < runs; ++run, rows += run_step, weights += (ADJACENT - 1) * tap)
        for (int k = 0; k < row_step; k += 4, weights += PANEL * 4) {
            intv w[ADJACENT][NV];
            UNROLL for (int t = 0; t < ADJACENT; ++t)
                UNROLL for (int j = 0; j < NV; ++j) w[t][j] = LOADI(weights + t * tap + j * VW * 4);
            UNROLL for (int i = 0; i < MR + ADJACENT - 1; ++i) {
                const intv x = (intv)*(__global const int_u *)(rows + i * row_step + k);
                UNROLL for (int t = 0; t < ADJACENT; ++t)
                    if (i >= t && i - t < MR)
                        UNROLL for (int j = 0; j < NV; ++j) tile[i - t][j] = DOT(tile[i - t][j], x, w[t][j]);
            }
        }
}
#endif

// tile[r][j] += `runs` runs of run_bytes of row r times weights.
INLINE void multiply_patches(intv tile[MR][NV], __global const uchar *restrict rows,
                             __global const char *restrict weights, const int row_step, const int runs,
                             const int run_bytes, const int run_step) {
#ifdef WIDENED_ROW
    multiply_widened(tile, rows, weights, runs, run_bytes, run_step);
    return;
#endif
#ifdef SHARES_LOADS
    multiply_adjacent(tile, rows, weights, row_step, runs, run_step);
    return;
#endif
    intv rest[NV];
    UNROLL for (int j = 0; j < NV; ++j) rest[j] = 0;
    for (int run = 0; run < runs; ++run, rows += run_step) {
        int k = 0;
        intv w[NV];
#ifdef BY_LANE
        weights = multiply_lanes(tile, rest, rows, weights, row_step, run_bytes);
        k = run_bytes / (4 * VW) * (4 * VW);
#endif
        for (; k + 4 * PACKED <= run_bytes; k += 4 * PACKED, weights += PANEL * 4) {
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(weights + j * VW * 4);
            UNROLL for (int i = 0; i < PACKED; ++i) multiply_fours(tile, rest, rows + k, w, row_step, i);
        }
#if PACKED > 1
        if (k < run_bytes) {  // nothing is read past the run
            UNROLL for (int j = 0; j < NV; ++j) w[j] = LOADI(weights + j * VW * 4);
            UNROLL for (int i = 0; i < PACKED - 1; ++i)
                if (k + 4 * i < run_bytes) multiply_fours(tile, rest, rows + k, w, row_step, i);
            weights += PANEL * 4;
        }
#endif
    }
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] -= rest[j];
}

#if MR > 1 && VW <= 8 && defined(MULTIPLY_PAIRS) && WEIGHT_BITS == 8 && !defined(WORDS) && !defined(LITECL_GPU)
// Gathered bytes are widened to words once for all columns (gather_patches.h).
#define WIDENED 1
#define WIDENED_ROWS (MR % 6 == 0 ? 6 : MR)  // whose sums fit in registers
typedef ushort Gathered;

#ifdef PAIRED
// tile[r][j] += `runs` runs of run_bytes words of row r times weights, which are widened when they are loaded.
INLINE void multiply_gathered(intv tile[MR][NV], __global const Gathered *restrict rows,
                              __global const char *restrict weights, const int row_step, const int runs,
                              const int run_bytes, const int run_step) {
    typedef char Columns __attribute__((vector_size(2 * VW), aligned(1)));
    for (int run = 0; run < runs; ++run, rows += run_step)
        for (int k = 0; k + 2 <= run_bytes; k += 2, weights += PANEL * 2) {
            words_of_intv w[NV];
            UNROLL for (int j = 0; j < NV; ++j)
                w[j] = __builtin_convertvector(*(__global const Columns *)(weights + j * 2 * VW), words_of_intv);
            UNROLL for (int r = 0; r < MR; ++r) {
                const intv x = *(__global const int_u *)(rows + r * row_step + k);
                UNROLL for (int j = 0; j < NV; ++j) tile[r][j] += MULTIPLY_PAIRS(AS_WORDS(x), w[j]);
            }
        }
}
#else
// tile[r][j] += `runs` runs of run_bytes words of row r times weights, which are widened when they are loaded: the four
// of a column are in two adjacent lanes of pairs.
INLINE void multiply_gathered(intv tile[MR][NV], __global const Gathered *restrict rows,
                              __global const char *restrict weights, const int row_step, const int runs,
                              const int run_bytes, const int run_step) {
    typedef char Columns __attribute__((vector_size(2 * VW), aligned(1)));
    typedef ulong Fours __attribute__((ext_vector_type(VW / 2)));
    typedef ulong Four __attribute__((aligned(1)));
    UNROLL for (int j = 0; j < NV; ++j)
        UNROLL for (int first = 0; first < MR; first += WIDENED_ROWS) {
            intv pairs[WIDENED_ROWS][2];
            UNROLL for (int r = 0; r < WIDENED_ROWS; ++r) pairs[r][0] = pairs[r][1] = 0;
            __global const Gathered *row = rows + first * row_step;
            __global const char *columns = weights + j * VW * 4;
            for (int run = 0; run < runs; ++run, row += run_step)
                for (int k = 0; k + 4 <= run_bytes; k += 4, columns += PANEL * 4) {
                    words_of_intv w[2];
                    UNROLL for (int h = 0; h < 2; ++h)
                        w[h] = __builtin_convertvector(*(__global const Columns *)(columns + h * 2 * VW), words_of_intv);
                    UNROLL for (int r = 0; r < WIDENED_ROWS; ++r) {
                        const Fours x = *(__global const Four *)(row + r * row_step + k);
                        UNROLL for (int h = 0; h < 2; ++h) pairs[r][h] += MULTIPLY_PAIRS(AS_WORDS(x), w[h]);
                    }
                }
            UNROLL for (int r = 0; r < WIDENED_ROWS; ++r) tile[first + r][j] += SUM_PAIRS(pairs[r]);
        }
}
#endif
#elif MR > 1 && defined(FEW_REGISTERS) && WEIGHT_BITS == 8
#ifdef WORDS
typedef uchar Gathered;
#define STEP 4  // of elements that are multiplied at once
#define DOT_GATHERED(sum, row, w) DOT2(sum, *(__global const int_u *)(row), w)
#else
// Gathered bytes are widened to words once for all columns (gather_patches.h): of every four, the even ones come first.
#define WIDENED 1
#define WIDENED_BY_FOURS 1
typedef ushort Gathered;
#define STEP 4
#define DOT_GATHERED(sum, row, w) dot_widened(sum, ((__global const int *)(row))[0], ((__global const int *)(row))[1], w)
#endif

// sums[r][j] += a run of row r times weights. It has a function of its own, so that no other values take registers.
OUT_OF_LINE void multiply_run(int sums[MR][NV], __global const Gathered *restrict row,
                              __global const char *restrict weights, const int row_step, const int run_bytes) {
    int tile[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = sums[r][j];
    for (__global const Gathered *end = row + (run_bytes & ~3); row != end; row += STEP, weights += PANEL * 4)
        UNROLL for (int j = 0; j < NV; ++j) {
            const int w = LOADI(weights + j * 4);
            UNROLL for (int r = 0; r < MR; ++r) tile[r][j] = DOT_GATHERED(tile[r][j], row + r * row_step, w);
        }
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) sums[r][j] = tile[r][j];
}

INLINE void multiply_gathered(intv tile[MR][NV], __global const Gathered *restrict rows,
                              __global const char *restrict weights, const int row_step, const int runs,
                              const int run_bytes, const int run_step) {
    int sums[MR][NV];
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) sums[r][j] = tile[r][j];
    for (int run = 0; run < runs; ++run, rows += run_step, weights += run_bytes / 4 * PANEL * 4)
        multiply_run(sums, rows, weights, row_step, run_bytes);
    UNROLL for (int r = 0; r < MR; ++r) UNROLL for (int j = 0; j < NV; ++j) tile[r][j] = sums[r][j];
}
#else
typedef uchar Gathered;
#define multiply_gathered multiply_patches
#endif

#if defined(PAIRED) && (!defined(WIDENED_ROWS) || defined(ACROSS))
#error "weights lie in pairs, but rows are not widened to words"
#endif

#ifdef ACROSS
#ifdef DOT_ALL
typedef int Across;  // of all lanes at once
#define PART_ACROSS DOT_ALL
#ifdef WORDS
#define REST_ACROSS(rest, w) (rest)
#else
#define REST_ACROSS ADD_ALL
#endif
#define SUM_ACROSS(sum, rest) ((sum) + 128 * (rest))
#else
typedef intv Across;
#define PART_ACROSS PART
#define REST_ACROSS REST
#define SUM_ACROSS(sum, rest) sum_ints((sum) - (rest))
#endif

// Adds four bytes in each lane of a column's weights, times as many of each row.
INLINE void add_across(Across sums[MR], Across *rest, const intv x[MR], const intv w) {
    UNROLL for (int r = 0; r < MR; ++r) sums[r] = PART_ACROSS(sums[r], x[r], w);
    *rest = REST_ACROSS(*rest, w);
}

// tile[r][0] += row r, of row_bytes (whole ints), times the weights of the first `columns` <= VW columns from n0 on.
// Of several rows whole vectors may be read; weights are zeros there.
INLINE void multiply_across(intv tile[MR][NV], __global const uchar *restrict rows, __global const char *restrict weights,
                            const int row_step, const int row_bytes, const int n0, const int columns) {
    const int step = 4 * VW, padded = (row_bytes + step - 1) / step * step;
    const int whole = MR == 1 ? row_bytes / step * step : padded;
    int sums[MR][VW];
    UNROLL for (int r = 0; r < MR; ++r) *(__private intv_u *)sums[r] = tile[r][0];
    weights += (size_t)n0 * padded;
#if MR == 1
    intv last[1] = {0};
    FIRST(i, (row_bytes - whole) / 4, VW)
        ((int *)last)[i] = *(__global const int_u *)(rows + whole + 4 * i) ^ ROW_FLIP;
#endif
    ROLL_FIRST(column, columns, VW) {
        Across sum[MR], rest = 0;
        UNROLL for (int r = 0; r < MR; ++r) sum[r] = 0;
        for (int k = 0; k < whole; k += step, weights += step) {
            intv x[MR];
            UNROLL for (int r = 0; r < MR; ++r) x[r] = LOADB(rows + r * row_step + k) ^ ROW_FLIP;
            add_across(sum, &rest, x, LOADI(weights));
        }
#if MR == 1
        if (whole < padded) {
            add_across(sum, &rest, last, LOADI(weights));
            weights += step;
        }
#endif
        UNROLL for (int r = 0; r < MR; ++r) sums[r][column] += SUM_ACROSS(sum[r], rest);
    }
    UNROLL for (int r = 0; r < MR; ++r) tile[r][0] = *(__private const intv_u *)sums[r];
}
#endif

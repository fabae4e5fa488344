// Matrix units: products of small matrices of halves, with sums in float32, that the work-items of a subgroup compute
// together: sums [UNIT_ROWS, UNIT_COLUMNS] += left [UNIT_ROWS, 16] right [16, UNIT_COLUMNS].
//
// Each lane holds some elements of each matrix, in runs that are adjacent in the depth. Which ones it holds is said by
// functions here, after
// - PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" (MATRIX_MMA, NVIDIA from sm_80 on);
// - ROCm/amd_matrix_instruction_calculator, v_mfma_f32_16x16x16f16 (MATRIX_MFMA) and v_wmma_f32_16x16x16_f16 with
//   wave32 (MATRIX_WMMA, gfx11);
// - OpenCL's cl_intel_subgroup_matrix_multiply_accumulate, f16 with M = 8 (MATRIX_DPAS, 8 or 16 lanes).
// A device that computes something else is found out before (delegate/opencl/probes/matrix_probe.py).
// Macros: MATRIX_..., UNIT_ROWS, UNIT_COLUMNS, UNIT_LANES; EMULATED: the same by work-items that exchange what they hold
// through local memory, for devices without such units, where all of a group multiply at the same time.
#define UNIT_DEPTH 16
#define UNIT_SUMS (UNIT_ROWS * UNIT_COLUMNS / UNIT_LANES)  // 4 or 8

#if UNIT_SUMS == 4
typedef float4 Sums;
#else
typedef float8 Sums;
#endif

#if defined(MATRIX_MMA)
typedef uint LeftRun, RightRun;
#define LEFT_RUNS 4
#define RIGHT_RUNS 2
inline int left_row(const int lane, const int run) { return lane / 4 + run % 2 * 8; }
inline int left_depth(const int lane, const int run) { return lane % 4 * 2 + run / 2 * 8; }
inline int right_column(const int lane, const int run) { return lane / 4; }
inline int right_depth(const int lane, const int run) { return lane % 4 * 2 + run * 8; }
inline int sum_row(const int lane, const int i) { return lane / 4 + i / 2 * 8; }
inline int sum_column(const int lane, const int i) { return lane % 4 * 2 + i % 2; }
#elif defined(MATRIX_MFMA)
typedef uint2 LeftRun, RightRun;
#define LEFT_RUNS 1
#define RIGHT_RUNS 1
inline int left_row(const int lane, const int run) { return lane % 16; }
inline int left_depth(const int lane, const int run) { return lane / 16 * 4; }
inline int right_column(const int lane, const int run) { return lane % 16; }
inline int right_depth(const int lane, const int run) { return lane / 16 * 4; }
inline int sum_row(const int lane, const int i) { return lane / 16 * 4 + i; }
inline int sum_column(const int lane, const int i) { return lane % 16; }
#elif defined(MATRIX_WMMA)
typedef uint4 LeftRun, RightRun;  // lanes from 16 on hold the same as those before them
#define LEFT_RUNS 2
#define RIGHT_RUNS 2
inline int left_row(const int lane, const int run) { return lane % 16; }
inline int left_depth(const int lane, const int run) { return run * 8; }
inline int right_column(const int lane, const int run) { return lane % 16; }
inline int right_depth(const int lane, const int run) { return run * 8; }
inline int sum_row(const int lane, const int i) { return i * 2 + lane / 16; }
inline int sum_column(const int lane, const int i) { return lane % 16; }
#elif defined(MATRIX_DPAS)
#if UNIT_LANES == 8
typedef uint LeftRun;
#else
typedef ushort LeftRun;
#endif
typedef uint4 RightRun;
#define LEFT_RUNS 8
#define RIGHT_RUNS 2
inline int left_row(const int lane, const int run) { return run; }
inline int left_depth(const int lane, const int run) { return lane * (UNIT_DEPTH / UNIT_LANES); }
inline int right_column(const int lane, const int run) { return lane; }
inline int right_depth(const int lane, const int run) { return run * 8; }
inline int sum_row(const int lane, const int i) { return i; }
inline int sum_column(const int lane, const int i) { return lane; }
#endif

typedef struct {
    LeftRun runs[LEFT_RUNS];
} Left;

typedef struct {
    RightRun runs[RIGHT_RUNS];
} Right;

// What a lane holds of matrices in local memory: from[row or column][depth], `step` halves from one line to the next.
inline Left left_of(__local const ushort *from, const int step, const int lane) {
    Left a;
    UNROLL for (int i = 0; i < LEFT_RUNS; ++i)
        a.runs[i] = *(__local const LeftRun *)(from + left_row(lane, i) * step + left_depth(lane, i));
    return a;
}

inline Right right_of(__local const ushort *from, const int step, const int lane) {
    Right b;
    UNROLL for (int i = 0; i < RIGHT_RUNS; ++i)
        b.runs[i] = *(__local const RightRun *)(from + right_column(lane, i) * step + right_depth(lane, i));
    return b;
}

#if !defined(MATRIX_MMA) && !defined(EMULATED)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// sums + a b. scratch: local memory for both operands of each subgroup, if lanes exchange what they hold.
#if defined(EMULATED)
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    const int lane = get_local_id(0) % UNIT_LANES;
    __local ushort *left = scratch + get_local_id(0) / UNIT_LANES * (UNIT_ROWS + UNIT_COLUMNS) * UNIT_DEPTH;
    __local ushort *right = left + UNIT_ROWS * UNIT_DEPTH;
    UNROLL for (int i = 0; i < LEFT_RUNS; ++i)
        *(__local LeftRun *)(left + left_row(lane, i) * UNIT_DEPTH + left_depth(lane, i)) = a.runs[i];
    UNROLL for (int i = 0; i < RIGHT_RUNS; ++i)
        *(__local RightRun *)(right + right_column(lane, i) * UNIT_DEPTH + right_depth(lane, i)) = b.runs[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < UNIT_SUMS; ++i)
        for (int k = 0; k < UNIT_DEPTH; ++k)
            ((float *)&sums)[i] += vload_half(sum_row(lane, i) * UNIT_DEPTH + k, (__local const half *)left) *
                                   vload_half(sum_column(lane, i) * UNIT_DEPTH + k, (__local const half *)right);
    barrier(CLK_LOCAL_MEM_FENCE);
    return sums;
}
#elif defined(MATRIX_MMA)
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sums.s0), "+f"(sums.s1), "+f"(sums.s2), "+f"(sums.s3)
                     : "r"(a.runs[0]), "r"(a.runs[1]), "r"(a.runs[2]), "r"(a.runs[3]), "r"(b.runs[0]), "r"(b.runs[1]));
    return sums;
}
#elif defined(MATRIX_MFMA)
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    return __builtin_amdgcn_mfma_f32_16x16x16f16(as_half4(a.runs[0]), as_half4(b.runs[0]), sums, 0, 0, 0);
}
#elif defined(MATRIX_WMMA)
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(as_half16((uint8)(a.runs[0], a.runs[1])),
                                                      as_half16((uint8)(b.runs[0], b.runs[1])), sums);
}
#elif UNIT_LANES == 8
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    const uint8 left = (uint8)(a.runs[0], a.runs[1], a.runs[2], a.runs[3], a.runs[4], a.runs[5], a.runs[6], a.runs[7]);
    return intel_sub_group_f16_f16_matrix_mad_k16(as_int8(left), as_int8((uint8)(b.runs[0], b.runs[1])), sums);
}
#else
inline Sums multiply(const Left a, const Right b, Sums sums, __local ushort *scratch) {
    const ushort8 left = (ushort8)(a.runs[0], a.runs[1], a.runs[2], a.runs[3], a.runs[4], a.runs[5], a.runs[6], a.runs[7]);
    return intel_sub_group_f16_f16_matrix_mad_k16(as_short8(left), as_int8((uint8)(b.runs[0], b.runs[1])), sums);
}
#endif

// Four halves, rounded to the nearest; beyond their range infinite. Not all compilers make an instruction of vstore_half.
#if defined(MATRIX_MMA) && !defined(EMULATED)
inline uint2 halves_of(const float4 x) {
    uint2 bits;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits.s0) : "f"(x.s1), "f"(x.s0));
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits.s1) : "f"(x.s3), "f"(x.s2));
    return bits;
}
#elif !defined(EMULATED)
inline uint2 halves_of(const float4 x) { return as_uint2(__builtin_convertvector(x, half4)); }
#else
inline uint2 halves_of(const float4 x) {
    uint2 bits;
    vstore_half4_rte(x, 0, (half *)&bits);
    return bits;
}
#endif

// Kernels that decide on the device whether queued launches do anything (delegate/opencl/runs/queued.py). Each has one
// work-item.
// flags: the flags of a loop or branch are adjacent. parent: the flag that guards all of it, or -1.
#include "common.h"
#include <delegate.plan.region_tables.BranchFlag>
#include <delegate.plan.region_tables.LoopFlag>

KERNEL void enter_loop(ITEM __global int *flags, const int parent, const int loop) {
    flags[loop + LOOP_FLAG_GOES_ON] = parent < 0 ? 1 : flags[parent];
    flags[loop + LOOP_FLAG_COUNT] = 0;
}

KERNEL void decide_loop(ITEM __global int *flags, const int loop, __global const uchar *predicate) {
    const int goes_on = flags[loop + LOOP_FLAG_GOES_ON] && *predicate;
    flags[loop + LOOP_FLAG_GOES_ON] = goes_on;
    flags[loop + LOOP_FLAG_COUNT] += goes_on;
}

KERNEL void decide_branch(ITEM __global int *flags, const int parent, const int branch,
                          __global const uchar *predicate) {
    const int runs = parent < 0 ? 1 : flags[parent];
    flags[branch + BRANCH_FLAG_THEN] = runs && *predicate;
    flags[branch + BRANCH_FLAG_OTHERWISE] = runs && !*predicate;
}

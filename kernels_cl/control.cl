// What decides, on the device, whether queued launches do anything (delegate/opencl/queued.py). Each has one work-item.
// flags: of a loop whether it goes on and how often its body has run; of a branch whether the one side runs and whether
// the other. parent: the flag that guards all this, -1 for none.
#include "common.h"

KERNEL void enter_loop(ITEM __global int *flags, const int parent, const int loop) {
    flags[loop] = parent < 0 ? 1 : flags[parent];
    flags[loop + 1] = 0;
}

KERNEL void decide_loop(ITEM __global int *flags, const int loop, __global const uchar *predicate) {
    flags[loop] = flags[loop] && *predicate;
    flags[loop + 1] += flags[loop];
}

KERNEL void decide_branch(ITEM __global int *flags, const int parent, const int branch,
                          __global const uchar *predicate) {
    const int runs = parent < 0 ? 1 : flags[parent];
    flags[branch] = runs && *predicate;
    flags[branch + 1] = runs && !*predicate;
}

// What the processor's counter says, to find out how fast it counts.
#include "common.h"
#include "clock.h"

KERNEL void read_clock(ITEM __global long *out) { out[ITEM_INDEX(0)] = CLOCK(); }

// How the processor's own back end runs a region: a function of a shared library, which the host calls with the numbers
// of NativeCall (delegate/native/execution.py); with helpers if they are free (crew.c), else, or with LITECL_SOLO,
// alone.
#include "float_mode.h"
#include "gate.h"
#include "clock.h"
#include <delegate.plan.region_tables.NativeCall>

#define GIVEN(name) call[NATIVE_CALL_##name]

static Region region_of(__global const ulong *call) {
    __global long *times = (__global long *)GIVEN(PROGRESS) + GIVEN(TIMES);
    const Region region = {GIVEN(ARENA), (__global const Entry *)GIVEN(WORKS), (__global const ulong *)GIVEN(ARGS),
                           (__global ulong *)GIVEN(SHIFTS), (__global int *)GIVEN(COUNTS),
                           (__global volatile int *)GIVEN(PROGRESS) TIMED(COMMA times),
                           (__global const ulong *)GIVEN(FUNCTIONS), (__global volatile int *)GIVEN(DOOR), (int)GIVEN(NUMBER), (int)GIVEN(COUNT), (int)GIVEN(WORKERS)
                           TIMED(COMMA STAMPS(times, GIVEN(COUNT)))};
    return region;
}

static void forget_times(const Region *r) {
    TIMED(for (int i = 0; i < r->count; ++i) r->times[i * STEP_TIMES + STEP_TIME_RUNS] = 0;)
}

// Runs the whole region in the calling thread alone.
static void run_alone(__global const ulong *call) {
    Region region = region_of(call);
    region.workers = 1;
    forget_times(&region);
    run_entries(&region, 0, region.count);
}

#ifdef LITECL_WORKERS
// Prepares a region that workers will share.
static void clear_progress(__global const ulong *call) {
    const Region region = region_of(call);
    const int places = region.works[region.count - 1].place + 1;
    const int lines = LAUNCH_LINES + places * (region.workers + 1);
    forget_times(&region);
    TIMED(for (int i = 0; i < region.workers * (places + 1); ++i) region.stamps[i] = 0;)
    for (int i = 0; i < lines; ++i) region.launch[i * LINE] = 0;
}

// One worker's part of a region, which the crew's helpers call.
__attribute__((visibility("default"))) void work_along(__global const ulong *call, const int worker) {
    const Region region = region_of(call);
    if (worker < region.workers)
        work_through(&region, region.launch + LAUNCH_LINES * LINE, region.count, worker, region.workers
                     TIMED(COMMA region.stamps));
}

typedef int (*Take)(void);
typedef void (*Lead)(__global ulong *call);

// Runs with helpers if they are free; returns whether they were.
static bool run_with_helpers(__global ulong *call) {
    if (!((Take)(size_t)GIVEN(TAKE))()) {
        run_alone(call);
        return false;
    }
    clear_progress(call);
    ((Lead)(size_t)GIVEN(LEAD))(call);
    return true;
}

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(LITECL_TIMED)
// Helpers may not pay: processors may be threads of one core, or busy. Of ROUND runs the first are measured, TRIES
// alone and as many with helpers, and the others use the faster way. Helpers must save a 32nd.
#define ROUND 1024
#define TRIES 6

static void run_measured_way(__global ulong *call) {
    const int run = (int)GIVEN(RUNS);
    GIVEN(RUNS) = (run + 1) % ROUND;
    if (run == 0) GIVEN(ALONE) = GIVEN(TOGETHER) = ~0UL;
    const ulong alone = GIVEN(ALONE), together = GIVEN(TOGETHER);
    if (run >= 2 * TRIES) {
        if (together < alone - alone / 32) run_with_helpers(call);
        else run_alone(call);
        return;
    }
    const ulong start = CLOCK();
    bool as_meant = true;
    if (run < TRIES) run_alone(call);
    else as_meant = run_with_helpers(call);
    const ulong time = (ulong)CLOCK() - start;
    if (run < TRIES) GIVEN(ALONE) = MIN(alone, time);
    else if (as_meant) GIVEN(TOGETHER) = MIN(together, time);
}
#else
#define run_measured_way(call) run_with_helpers(call)
#endif

static void run_together(__global ulong *call) {
    if (GIVEN(WORKERS) == 1) run_alone(call);
    else if (GIVEN(MEASURED)) run_measured_way(call);
    else run_with_helpers(call);
}
#else
#define run_together(call) run_alone(call)
#endif

__attribute__((visibility("default"))) void run_region(__global ulong *call) {
    int *gate = (int *)(size_t)GIVEN(GATE);
    const FloatMode before = enter_float_mode();
    leave_gate(gate);
    run_together(call);
    if (float_mode() != before) set_float_mode(before);
    enter_gate(gate);
}

// How a region of a CPU begins: the kernel that is launched, and the function by which the host runs it again.
#include <Again>

typedef struct {
    __global uchar *arena, *constants;
    __global const Entry *works;
    __global const ulong *args;
    __global ulong *shifts;
    __global int *counts;
    __global volatile int *progress;
    int count;
    int worker, workers;
    TIMED(int start;)
#ifdef LITECL_CREW
    __global volatile int *door;
#endif
#ifdef LITECL_AGAIN
    uint mode;  // of floating-point arithmetic, as the runtime sets it
#endif
} Call;

#ifdef LITECL_CREW
static void run_region(const Call call) {
    __global volatile int *door = call.door, *progress = call.progress;
    TIMED(__global long *times = TIMES(progress, call.start) COMMA *stamps = STAMPS(times, call.count);)
    const Region region = {(ulong)call.arena, call.works, call.args, call.shifts, call.counts, progress
                           TIMED(COMMA times), DOOR(RUN), *DOOR(RUN) + 1, call.count, call.workers TIMED(COMMA stamps)};
    const int places = call.works[call.count - 1].place + 1, lines = LAUNCH_LINES + places * (call.workers + 1);
    TIMED(for (int i = 0; i < call.count; ++i) times[i * STEP_TIMES + STEP_TIME_RUNS] = 0;)
    TIMED(for (int i = 0; i < call.workers * (places + 1); ++i) stamps[i] = 0;)  // of helpers that do not come now
    for (int i = 0; i < lines; ++i) progress[i * LINE] = 0;
    ulong address = (ulong)&region;
    int worker = 0;
    *(__global ulong *)DOOR(REGION) = address;
#ifdef LITECL_ADDRESSES
    ADDRESS_OF(work_along, *(__global ulong *)DOOR(FUNCTION));
#endif
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(DOOR(RUN));  // odd: open
    OPAQUE(address);
    OPAQUE(worker);
    work_along(address, worker);
    atomic_inc(DOOR(RUN));
    for (int waited = 0; *DOOR(INSIDE); ++waited) pause_worker(waited);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}
#else
static void run_region(const Call call) {
    TIMED(__global long *times = TIMES(call.progress, call.start);)
    const Region region = {(ulong)call.arena, call.works, call.args, call.shifts, call.counts, call.progress
                           TIMED(COMMA times)};
#ifdef LITECL_SOLO
    TIMED(for (int i = 0; i < call.count; ++i) times[i * STEP_TIMES + STEP_TIME_RUNS] = 0;)
    run_entries(&region, 0, call.count);
#else
    work_through(&region, call.progress + LAUNCH_LINES * LINE, call.count, call.worker, call.workers
                 TIMED(COMMA STAMPS(times, call.count)));
#endif
}
#endif

#ifdef LITECL_AGAIN
#include "gate.h"

typedef char call_fits[AGAIN_CALL + sizeof(Call) / 8 < AGAIN_SIZE ? 1 : -1];

// The host calls this function at its address, with the place where a launch has left both (delegate/opencl/again.py).
CALLABLE void run_again(const ulong place) {
    const Call *call = (const Call *)(place + AGAIN_CALL * 8);
    const uint mode = __builtin_ia32_stmxcsr();
    leave_gate(((const ulong *)place)[AGAIN_GATE]);
    __builtin_ia32_ldmxcsr(call->mode);
    run_region(*call);
    __builtin_ia32_ldmxcsr(mode);
    enter_gate(((const ulong *)place)[AGAIN_GATE]);
}
#define AGAIN_ARGUMENT COMMA __global ulong *again
#else
#define AGAIN_ARGUMENT
#endif

#define REGION_ARGUMENTS                                                                                             \
    __global uchar *arena, __global uchar *constants, __global const Entry *works, __global const ulong *args,        \
        __global ulong *shifts, __global int *counts, __global volatile int *progress, const int count               \
        TIMED(COMMA const int start)

#ifdef LITECL_CREW
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void lead(REGION_ARGUMENTS, __global volatile int *door, const int workers AGAIN_ARGUMENT OWN(ARGUMENT)) {
    Call call = {arena, constants, works, args, shifts, counts, progress, count, 0, workers TIMED(COMMA start), door};
#else
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void run(REGION_ARGUMENTS AGAIN_ARGUMENT OWN(ARGUMENT)) {
    Call call = {arena, constants, works, args, shifts, counts, progress, count, get_group_id(0), get_num_groups(0)
                 TIMED(COMMA start)};
#endif
    shifts[SHIFT_CONSTANTS] = (ulong)constants - (ulong)arena;  // every worker writes the same values
    OWN(SHIFT_OWN)
#ifdef LITECL_AGAIN
    call.mode = __builtin_ia32_stmxcsr();
    *(__global Call *)(again + AGAIN_CALL) = call;
    ulong address = (ulong)again;
    ADDRESS_OF(run_again, again[AGAIN_FUNCTION]);
    OPAQUE(address);
    run_again(address);
#else
    run_region(call);
#endif
}

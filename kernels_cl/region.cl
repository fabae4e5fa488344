// A whole region in one launch: workers run the launches of a plan in turn, sharing the work-items of each.
//
// works holds the entries, args the arguments of all launches (region.h). shifts holds a 0, the distance from arena to
// constants, then for every loop the distances to the set of variables that it reads and to the set that it writes.
// counts holds 1 + the number of a loop that ran too often, then how often each has run.
// Records and codes are declared in delegate/plan/region_tables.py.
// progress holds, for each launch, a cache line of zeros for every worker and one more: the work-items begun in each
// worker's share, and those done. A worker begins with its own share, so that it reads in one launch what it wrote in
// the one before, then waits a little, helps with the others' shares, and goes on to the next launch when all are done;
// so even a single worker reaches the end.
// A block of control flow counts as one work-item: one worker executes it. At a launch of several work-items it hands
// out a ticket for each, and the workers that wait for the block help. Ticket numbers increase from the first launch to
// the last, so a late worker finds no tickets left for the launch that it has read about.
// On a GPU there is one group, whose work-items walk the table together: they share those of a launch, and all wait at
// a barrier after it. A barrier also follows what one work-item writes for all, and precedes overwriting what all have
// read. The group does nothing where flags[flag] is 0.
// Macros: FUNCTIONS(F), which expands to F(number, name) for every function that is called, precedes this file; OWN(F),
// which expands to F(number, shift) for memory outside the arena that is an argument of its own, may precede it;
// LITECL_SOLO, for a single worker: then nothing is counted; LITECL_STRAIGHT, without control flow; LITECL_GROUP, for a
// GPU; LITECL_NATIVE, for the processor's own back end: the host passes a table of functions instead of FUNCTIONS, so
// that this file is compiled once for all regions; there also LITECL_TIMED, for a library that measures its own steps.
// After progress, `times` then has the entries that one worker executes, and `stamps` a row for every worker: when it
// began, and when it saw each launch done.
#include "common.h"
#include <delegate.plan.region_tables.Control>
#include <delegate.plan.region_tables.Count>
#include <delegate.plan.region_tables.Entry>
#include <delegate.plan.region_tables.LaunchLine>
#include <delegate.plan.region_tables.Shift>
#include <delegate.plan.region_tables.RegionSize>

#include "workers.h"

#ifdef LITECL_TIMED
#include "clock.h"
#include <delegate.plan.region_tables.StepTime>
#define TIMED(statement) statement
#define STAMPS(times, count) ((times) + (count) * STEP_TIMES)
#else
#define TIMED(statement)
#endif

#ifdef LITECL_GROUP
#define FIRST_ITEM (get_local_id(0) == 0)
#define SYNC barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define FIRST_ITEM true
#define SYNC
#endif

#define COMMA ,

#ifndef OWN
#define OWN(F)
#endif
#define ARGUMENT(number, shift) COMMA __global uchar *own_##number
#define SHIFT_OWN(number, shift) shifts[shift] = (ulong)own_##number - (ulong)arena;

typedef struct {
    ulong arena;
    __global const Entry *works;
    __global const ulong *args;
    __global ulong *shifts;
    __global int *counts;
    __global volatile int *launch;
    TIMED(__global long *times;)
#ifdef LITECL_NATIVE
    __global const ulong *functions;
    __global volatile int *door;
    int number;  // of the run, as the door says it
    int count, workers;
    TIMED(__global long *stamps;)
#endif
} Region;

// A field of the block's launch that waiting workers help with, each on its own cache line.
#define LAUNCH(r, name) ((r)->launch + LAUNCH_LINE_##name * LINE)

#ifdef LITECL_NATIVE
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef void (*Function)(int, int, int, ulong, __global const ulong *, __global const ulong *);
#define CALL(function) ((Function)(size_t)r->functions[function])(item_0, item_1, item_2, r->arena, args, r->shifts)
#else
#define PROTOTYPE(number, name) CALLER(name);
#define CASE(number, name) \
    case number: name(item_0, item_1, item_2, r->arena, args, r->shifts); break;
#define CALL(function) switch (function) { FUNCTIONS(CASE) }
FUNCTIONS(PROTOTYPE)
#endif

static void call_function(const Region *r, const int function, const int item_0, const int item_1, const int item_2,
                          __global const ulong *args) {
    CALL(function);
}

static int items_of(__global const Entry *work) { return work->size_0 * work->size_1 * work->size_2; }

static void run_items(const Region *r, const int first, const int last, __global const Entry *work) {
    __global const ulong *args = r->args + work->first_arg;
    if (work->size_1 * work->size_2 == 1) {
        for (int i = first; i < last; ++i) call_function(r, work->code, i, 0, 0, args);
    } else {
        for (int i = first; i < last; ++i)
            call_function(r, work->code, i % work->size_0, i / work->size_0 % work->size_1,
                          i / (work->size_0 * work->size_1), args);
    }
}

#if !defined(LITECL_SOLO) && !defined(LITECL_GROUP)
#define LITECL_WORKERS
#endif

#ifdef LITECL_WORKERS
static void take_tickets(const Region *r, __global const Entry *work, const uint first) {
    __global volatile int *ticket = LAUNCH(r, TICKET);
    const uint items = items_of(work);
    for (uint next = *ticket; next - first < items; next = *ticket) {
        if ((uint)atomic_cmpxchg(ticket, (int)next, (int)(next + 1)) != next) continue;
        run_items(r, next - first, next - first + 1, work);
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        atomic_inc(LAUNCH(r, DONE));
    }
}

static void share_items(const Region *r, __global const Entry *work) {
    const int first = *LAUNCH(r, TICKET);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(LAUNCH(r, NUMBER));
    *LAUNCH(r, ENTRY) = (int)(work - r->works);
    *LAUNCH(r, FIRST) = first;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(LAUNCH(r, NUMBER));
    take_tickets(r, work, first);
    for (int waited = 0; *LAUNCH(r, DONE) - first < items_of(work); ++waited) pause_worker(waited);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}

static void help(const Region *r) {
    const int number = *LAUNCH(r, NUMBER);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    const int entry = *LAUNCH(r, ENTRY), first = *LAUNCH(r, FIRST);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (number > 0 && number % 2 == 0 && *LAUNCH(r, NUMBER) == number) take_tickets(r, r->works + entry, first);
}
#endif

static void run_all(const Region *r, __global const Entry *work) {
#ifdef LITECL_GROUP
    const int items = items_of(work), step = get_local_size(0);
    for (int i = get_local_id(0); i < items; i += step) run_items(r, i, i + 1, work);
#else
    if (items_of(work) == 1) call_function(r, work->code, 0, 0, 0, r->args + work->first_arg);
#ifdef LITECL_SOLO
    else run_items(r, 0, items_of(work), work);
#elif defined(LITECL_NATIVE)
    else if (r->workers == 1) run_items(r, 0, items_of(work), work);
    else share_items(r, work);
#else
    else share_items(r, work);
#endif
#endif
}

static void swap_sets(const Region *r, const int loop) {
    __global ulong *sets = r->shifts + SHIFT_SETS + 2 * loop;
    if (FIRST_ITEM) {
        const ulong read = sets[0];
        sets[0] = sets[1];
        sets[1] = read;
    }
}

static bool holds(const Region *r, const ulong arg) {
    const ulong arena = r->arena;
    __global const ulong *shifts = r->shifts;
    return *PLACE(arg);
}

// Counts an iteration of a loop; returns whether it has run so often that the region ends.
static bool count_one(const Region *r, __global const Entry *work) {
    __global int *count = r->counts + COUNT_LOOPS + work->loop;
    const int before = *count;
    const bool ends = before == work->times;
    SYNC;
    if (FIRST_ITEM) {
        *count = before + 1;
        if (ends) r->counts[COUNT_ENDLESS] = work->loop + 1;
    }
    return ends;
}

#ifdef LITECL_TIMED
#define TURNS_FIRST 8
#define TURNS_APART 29  // no power of two, which may be the number of an inner loop's iterations

// Reading the clock takes some 10 ns, as long as a small launch. So only the first iterations of a loop are measured,
// then one of several; a launch that none of these reaches is measured the first time that it runs.
typedef struct {
    long since;
    int turns;  // of all loops
    bool on;
} Watch;

// Begins another iteration, or continues after the loop.
static void turn(Watch *watch, const bool again) {
    const bool on = !again || ++watch->turns < TURNS_FIRST || watch->turns % TURNS_APART == 0;
    if (on && !watch->on) watch->since = CLOCK();
    watch->on = on;
}

// Charges a launch with the time since `since`, including control flow before it; returns the time now.
static long charge(__global long *time, const long since) {
    const long now = CLOCK();
    if (!time[STEP_TIME_RUNS]) {
        time[STEP_TIME_FIRST] = since;
        time[STEP_TIME_CYCLES] = time[STEP_TIME_MEASURED] = 0;
    }
    time[STEP_TIME_CYCLES] += now - since;
    ++time[STEP_TIME_MEASURED];
    return now;
}

static void run_measured(const Region *r, __global const Entry *work, Watch *watch) {
    __global long *time = r->times + (work - r->works) * STEP_TIMES;
    const bool is_measured = watch->on || !time[STEP_TIME_RUNS];
    if (is_measured && !watch->on) watch->since = CLOCK();
    run_all(r, work);
    if (is_measured) watch->since = charge(time, watch->since);
    ++time[STEP_TIME_RUNS];
}
#else
#define run_measured(r, work, watch) run_all(r, work)
#endif

static void run_entries(const Region *r, int at, const int end) {
    TIMED(Watch watch = {CLOCK() COMMA 0 COMMA true};)
    while (at < end) {
        TIMED(const int entry = at;)
        __global const Entry *work = r->works + at;
        ++at;
#ifdef LITECL_STRAIGHT
        run_measured(r, work, &watch);
#else
        switch (work->code) {
            case CONTROL_BLOCK: break;
            case CONTROL_JUMP: at = work->to; break;
            case CONTROL_UNLESS: if (!holds(r, r->args[work->first_arg])) at = work->to; break;
            case CONTROL_WHILE:
                if (holds(r, r->args[work->first_arg])) at = work->to;
                TIMED(turn(&watch, at <= entry);)
                break;
            case CONTROL_REPEAT:
                if (r->counts[COUNT_LOOPS + work->loop] < work->times) at = work->to;
                TIMED(turn(&watch, at <= entry);)
                break;
            case CONTROL_SWAP: swap_sets(r, work->loop); break;
            case CONTROL_START: if (FIRST_ITEM) r->counts[COUNT_LOOPS + work->loop] = 0; break;
            case CONTROL_COUNT: if (count_one(r, work)) at = end; break;
            default: run_measured(r, work, &watch);
        }
#endif
        SYNC;
    }
}

#ifdef LITECL_WORKERS
#ifdef LITECL_NATIVE
// Whether the run is still on; once it has ended, a helper has nothing left to do.
#define GOES_ON(r) (*(r)->door == (r)->number)
#else
#define GOES_ON(r) true
#endif

// The first item of a worker's share.
#define SHARE_START(items, worker, workers) (((items) * (worker) + (workers) - 1) / (workers))

// Runs what nobody has begun of a worker's share of an entry; returns the number of items.
static int run_share(const Region *r, const int at, const int items, __global volatile int *begun, const int owner,
                     const int workers) {
    __global const Entry *work = r->works + at;
    const int first = SHARE_START(items, owner, workers), last = SHARE_START(items, owner + 1, workers);
    int finished = 0;
    if (begun[owner * LINE] >= last - first) return 0;
    for (int i = first + atomic_inc(begun + owner * LINE); i < last; i = first + atomic_inc(begun + owner * LINE)) {
        if (work->code == CONTROL_BLOCK) run_entries(r, at + 1, work->to);
        else run_items(r, i, i + 1, work);
        ++finished;
    }
    return finished;
}

// How long a worker that has done its share waits for others before it looks into theirs, which delays them. It doesn't
// wait where one had begun nothing the launch before.
#define WAITS 64

// One worker's part of all launches.
static void work_through(const Region *r, __global volatile int *progress, const int count, const int worker,
                         const int workers TIMED(COMMA __global long *stamps)) {
    TIMED(__global long *stamp = stamps + worker * (r->works[count - 1].place + 2); *stamp = CLOCK();)
    int waits = WAITS;
    for (int at = 0, next; at < count && GOES_ON(r); at = next) {
        __global const Entry *work = r->works + at;
        const bool is_block = work->code == CONTROL_BLOCK;
        const int items = is_block ? 1 : items_of(work);
        next = is_block ? work->to : at + 1;
        __global volatile int *begun = progress + work->place * (workers + 1) * LINE, *done = begun + workers * LINE;
        PREFETCH_TO_WRITE(begun + (workers + 1 + worker) * LINE);  // for the next launch
        int finished = run_share(r, at, items, begun, worker, workers), idle = 0;
        if (finished) atomic_add(done, finished);
        for (int waited = 0; *done < items && GOES_ON(r); ++waited) {
            if (is_block) help(r);
            for (int turn = 1; waited >= waits && turn < workers; ++turn) {
                const int owner = (worker + turn) % workers;
                const bool none = begun[owner * LINE] == 0;
                finished = run_share(r, at, items, begun, owner, workers);
                if (finished) atomic_add(done, finished);
                idle |= finished && none;
            }
            pause_worker(waited);
        }
        waits = idle ? 0 : WAITS;
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        TIMED(*++stamp = CLOCK();)
    }
}
#endif

#if defined(LITECL_NATIVE)
#include "region_native.h"
#elif defined(LITECL_GROUP)
#include "region_group.h"
#else
#include "region_launch.h"
#endif

// A whole region in one launch: workers walk through the launches of a plan, sharing out the work-items of each.
//
// works holds six numbers an entry (region_program.py). Of a launch: which function, its work-items in three
// dimensions, its first argument, and its place in progress. Of control flow: one of the codes below, then what it
// needs of an entry to go to, a loop's number and a number of iterations, in this order.
// args holds the arguments of all launches (region.h). shifts holds a 0, what leads from arena to constants, then for
// every loop what is added to reach the set of variables that it reads, and to reach the one that it writes. counts
// holds a loop's number plus 1 if that one ran too often, then how often each has run.
// progress holds a cache line of zeros for every worker and one more, launch by launch: the work-items begun in each
// worker's share, and those done. A worker begins with its own share, so that what it wrote in one launch it reads in
// the next, then helps with the others', and goes on to the next launch when all are done; so one worker alone gets to
// the end, however many there are.
// A block of control flow counts as one work-item: one worker walks through it. Where it comes to a launch of several
// work-items it hands out a ticket for each, and the workers that wait for the block help. Tickets are numbered through
// from the first launch to the last, so a worker that looks up late finds none left of the launch that it looked at.
// Macros: FUNCTIONS(F), which expands to F(number, name) for every function that is called, stands before this file;
// LITECL_SOLO, for a device that runs one work-group at a time: then nothing is counted.
#include "common.h"

#define WORK_FIELDS 6
#define PATIENCE 2000
#define LINE 16  // ints in a cache line

// Codes of control flow. BLOCK: everything up to an entry. JUMP: go on at an entry. UNLESS, WHILE: do so where the truth
// value that an argument names is false, or true. REPEAT: do so until a loop has run so often. SWAP: a loop's two sets
// of variables change places. START: a loop has not run yet. COUNT: it runs once more, and everything ends if that is
// too often.
#define BLOCK -1
#define JUMP -2
#define UNLESS -3
#define WHILE -4
#define REPEAT -5
#define SWAP -6
#define START -7
#define COUNT -8

// What a launch of a block looks like to those that help, each on a cache line of its own. NUMBER is odd while the
// others are being written.
#define NUMBER 0
#define ENTRY (1 * LINE)
#define FIRST (2 * LINE)
#define TICKET (3 * LINE)
#define DONE (4 * LINE)

#define PROTOTYPE(number, name) CALLER(name);
FUNCTIONS(PROTOTYPE)

typedef struct {
    ulong arena;
    __global const int *works;
    __global const ulong *args;
    __global ulong *shifts;
    __global int *counts;
    __global volatile int *launch;
} Region;

#define CASE(number, name) \
    case number: name(item_0, item_1, item_2, r->arena, args, r->shifts); break;

static void call_function(const Region *r, const int function, const int item_0, const int item_1, const int item_2,
                          __global const ulong *args) {
    switch (function) { FUNCTIONS(CASE) }
}

static int items_of(__global const int *work) { return work[1] * work[2] * work[3]; }

static void run_items(const Region *r, const int first, const int last, __global const int *work) {
    __global const ulong *args = r->args + work[4];
    if (work[2] * work[3] == 1) {
        for (int i = first; i < last; ++i) call_function(r, work[0], i, 0, 0, args);
    } else {
        for (int i = first; i < last; ++i)
            call_function(r, work[0], i % work[1], i / work[1] % work[2], i / (work[1] * work[2]), args);
    }
}

#ifndef LITECL_SOLO
// A worker that waits lets the others run: it may be their processor that it is waiting on.
static void pause_worker(const int waited) {
#ifdef LITECL_ASSEMBLY  // x86-64's, on Linux
    // PoCL 6 takes a call without a name for one of get_local_size and the like: its operands must be constants.
    if (waited > PATIENCE) {  // sched_yield
        __asm__ volatile("movl $24, %%eax\n\tsyscall" : : "i"(0), "i"(0), "i"(0) : "rax", "rcx", "r11", "memory");
    } else {
        __builtin_ia32_pause();
    }
#endif
}

static void take_tickets(const Region *r, __global const int *work, const uint first) {
    __global volatile int *ticket = r->launch + TICKET;
    const uint items = items_of(work);
    for (uint next = *ticket; next - first < items; next = *ticket) {
        if ((uint)atomic_cmpxchg(ticket, (int)next, (int)(next + 1)) != next) continue;
        run_items(r, next - first, next - first + 1, work);
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        atomic_inc(r->launch + DONE);
    }
}

static void share_items(const Region *r, __global const int *work) {
    const int first = r->launch[TICKET];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(r->launch + NUMBER);
    r->launch[ENTRY] = work - r->works;
    r->launch[FIRST] = first;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(r->launch + NUMBER);
    take_tickets(r, work, first);
    for (int waited = 0; r->launch[DONE] - first < items_of(work); ++waited) pause_worker(waited);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}

static void help(const Region *r) {
    const int number = r->launch[NUMBER];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    const int entry = r->launch[ENTRY], first = r->launch[FIRST];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (number > 0 && number % 2 == 0 && r->launch[NUMBER] == number) take_tickets(r, r->works + entry, first);
}
#endif

static void run_all(const Region *r, __global const int *work) {
    if (items_of(work) == 1) call_function(r, work[0], 0, 0, 0, r->args + work[4]);
#ifdef LITECL_SOLO
    else run_items(r, 0, items_of(work), work);
#else
    else share_items(r, work);
#endif
}

static void swap_sets(const Region *r, const int loop) {
    __global ulong *sets = r->shifts + 2 + 2 * loop;
    const ulong read = sets[0];
    sets[0] = sets[1];
    sets[1] = read;
}

static bool holds(const Region *r, const ulong arg) {
    const ulong arena = r->arena;
    __global const ulong *shifts = r->shifts;
    return *PLACE(arg);
}

static void walk(const Region *r, int at, const int end) {
    while (at < end) {
        __global const int *work = r->works + at * WORK_FIELDS;
        ++at;
        switch (work[0]) {
            case BLOCK: break;
            case JUMP: at = work[1]; break;
            case UNLESS: if (!holds(r, r->args[work[4]])) at = work[1]; break;
            case WHILE: if (holds(r, r->args[work[4]])) at = work[1]; break;
            case REPEAT: if (r->counts[1 + work[2]] < work[3]) at = work[1]; break;
            case SWAP: swap_sets(r, work[1]); break;
            case START: r->counts[1 + work[1]] = 0; break;
            case COUNT:
                if (r->counts[1 + work[1]]++ == work[2]) {
                    r->counts[0] = work[1] + 1;
                    at = end;
                }
                break;
            default: run_all(r, work);
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void run(__global uchar *arena, __global uchar *constants, __global const int *works, __global const ulong *args,
         __global ulong *shifts, __global int *counts, __global volatile int *progress, const int count) {
    const Region region = {(ulong)arena, works, args, shifts, counts, progress};
    shifts[1] = (ulong)constants - (ulong)arena;  // every worker writes the same
#ifdef LITECL_SOLO
    walk(&region, 0, count);
#else
    const int worker = get_group_id(0), workers = get_num_groups(0);
    progress += DONE + LINE;
    for (int at = 0, next; at < count; at = next) {
        __global const int *work = works + at * WORK_FIELDS;
        const bool is_block = work[0] == BLOCK;
        const int items = is_block ? 1 : items_of(work);
        next = is_block ? work[1] : at + 1;
        __global volatile int *begun = progress + work[5] * (workers + 1) * LINE, *done = begun + workers * LINE;
        int finished = 0;
        for (int turn = 0; turn < workers; ++turn) {
            const int owner = (worker + turn) % workers;
            const int first = items * owner / workers, last = items * (owner + 1) / workers;
            __global volatile int *taken = begun + owner * LINE;
            for (int i = first + atomic_inc(taken); i < last; i = first + atomic_inc(taken), ++finished) {
                if (is_block) walk(&region, at + 1, next);
                else run_items(&region, i, i + 1, work);
            }
        }
        atomic_add(done, finished);
        for (int waited = 0; *done < items; ++waited) {
            if (is_block) help(&region);
            pause_worker(waited);
        }
        mem_fence(CLK_GLOBAL_MEM_FENCE);
    }
#endif
}

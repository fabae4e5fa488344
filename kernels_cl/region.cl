// A whole region in one launch: workers walk through the launches of a plan, sharing out the work-items of each.
//
// works holds six numbers a launch: which function, its work-items in three dimensions, its first argument, and 0.
// args holds the arguments of all launches (region.h).
// progress holds a cache line of zeros for every worker and one more, launch by launch: the work-items begun in each
// worker's share, and those done. A worker begins with its own share, so that what it wrote in one launch it reads in
// the next, then helps with the others', and goes on to the next launch when all are done; so one worker alone gets to
// the end, however many there are.
// Macros: FUNCTIONS(F), which expands to F(number, name) for every function that is called, stands before this file;
// LITECL_SOLO, for a device that runs one work-group at a time: then nothing is counted.
#include "common.h"

#define WORK_FIELDS 6
#define PATIENCE 2000
#define LINE 16  // ints in a cache line

#define PROTOTYPE(number, name) CALLER(name);
FUNCTIONS(PROTOTYPE)

#define CASE(number, name) \
    case number: name(item_0, item_1, item_2, arena, constants, args); break;

static void call_function(const int function, const int item_0, const int item_1, const int item_2,
                          __global uchar *arena, __global uchar *constants, __global const ulong *args) {
    switch (function) { FUNCTIONS(CASE) }
}

// A worker that waits lets the others run: it may be their processor that it is waiting on.
static void pause_worker(const int waited) {
#if defined(__x86_64__) && defined(__linux__)
    if (waited > PATIENCE) {
        long result = 24;  // sched_yield
        __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    } else {
        __asm__ volatile("pause");
    }
#endif
}

static void run_items(const int first, const int last, __global const int *work, __global uchar *arena,
                      __global uchar *constants, __global const ulong *args) {
    for (int i = first; i < last; ++i)
        call_function(work[0], i % work[1], i / work[1] % work[2], i / (work[1] * work[2]), arena, constants,
                  args + work[4]);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void run(__global uchar *arena, __global uchar *constants, __global const int *works, __global const ulong *args,
         __global volatile int *progress, const int count) {
    const int worker = get_group_id(0), workers = get_num_groups(0);
    for (int w = 0; w < count; ++w) {
        __global const int *work = works + w * WORK_FIELDS;
        const int items = work[1] * work[2] * work[3];
#ifdef LITECL_SOLO
        run_items(0, items, work, arena, constants, args);
#else
        __global volatile int *begun = progress + w * (workers + 1) * LINE, *done = begun + workers * LINE;
        int finished = 0;
        for (int turn = 0; turn < workers; ++turn) {
            const int owner = (worker + turn) % workers;
            const int first = items * owner / workers, last = items * (owner + 1) / workers;
            __global volatile int *taken = begun + owner * LINE;
            for (int i = first + atomic_inc(taken); i < last; i = first + atomic_inc(taken), ++finished)
                run_items(i, i + 1, work, arena, constants, args);
        }
        atomic_add(done, finished);
        for (int waited = 0; *done < items; ++waited) pause_worker(waited);
        mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
    }
}

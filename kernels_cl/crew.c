// Helpers: threads that share the work of a region with the thread that runs it (delegate/native/workers.py).
//
// While they wait for the next run they spin for some milliseconds, then sleep. They serve one region at a time; a
// thread that finds them taken runs its region alone. Nothing depends on them: the leading thread does whatever no
// helper has begun. This is C, in a library that a process loads once and never unloads.
#include "float_mode.h"
#include <delegate.plan.region_tables.NativeCall>

#define EXPORTED __attribute__((visibility("default")))
#define LINE __attribute__((aligned(64)))
#define PATIENCE 6000  // pauses before a helper sleeps, most of which let other threads run
#define AWAKE 2000     // pauses after which a waiting thread yields at each

typedef unsigned long long ulong;
typedef void (*WorkAlong)(const ulong *call, int worker);

static struct {
    LINE int taken;                  // by the thread that leads a run
    LINE int run;                    // the number of runs begun and ended: odd during one
    LINE int inside;                 // helpers that are in the run
    LINE int asleep;                 // helpers that sleep, or are about to
    LINE const ulong *call;          // of the run (NativeCall)
    LINE int helpers;                // threads that have been started
} crew;

#define GET(field) __atomic_load_n(&crew.field, __ATOMIC_SEQ_CST)
#define SET(field, value) __atomic_store_n(&crew.field, value, __ATOMIC_SEQ_CST)
#define WORK_ALONG(call, worker) ((WorkAlong)(__UINTPTR_TYPE__)(call)[NATIVE_CALL_ALONG])(call, worker)
#define ADD(field, value) __atomic_fetch_add(&crew.field, value, __ATOMIC_SEQ_CST)

#if defined(_WIN32)
extern int __stdcall SwitchToThread(void);
#define LET_OTHERS_RUN() SwitchToThread()
#else
extern int sched_yield(void);
#define LET_OTHERS_RUN() sched_yield()
#endif

static void rest(int waited) {
    if (waited > AWAKE) {
        LET_OTHERS_RUN();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Sleeps while crew.run is `seen`, for a limited time; wake_all wakes all sleepers.
#if defined(__linux__)
extern long syscall(long number, ...);
#if defined(__x86_64__)
#define FUTEX 202
#define PRCTL 157
#elif defined(__i386__) || defined(__arm__)
#define FUTEX 240
#define PRCTL 172
#else
#define FUTEX 98
#define PRCTL 167
#endif
#define NAME_THREAD() syscall(PRCTL, 15, "litecl helper", 0, 0, 0)  // as delegate/backend/fork.py and debuggers see it
static void sleep_while(int seen) { syscall(FUTEX, &crew.run, 128, seen, (void *)0, (void *)0, 0); }
static void wake_all(void) { syscall(FUTEX, &crew.run, 129, 0x7fffffff, (void *)0, (void *)0, 0); }
#elif defined(_WIN32)
extern int __stdcall WaitOnAddress(volatile void *address, void *compared, ulong size, unsigned timeout_ms);
extern void __stdcall WakeByAddressAll(void *address);
static void sleep_while(int seen) { WaitOnAddress(&crew.run, &seen, sizeof seen, 0xffffffff); }
static void wake_all(void) { WakeByAddressAll(&crew.run); }
#elif defined(__APPLE__)
extern int __ulock_wait(unsigned operation, void *address, unsigned long long value, unsigned timeout_us);
extern int __ulock_wake(unsigned operation, void *address, unsigned long long value);
static void sleep_while(int seen) { __ulock_wait(1, &crew.run, (unsigned)seen, 0); }
static void wake_all(void) { __ulock_wake(0x101, &crew.run, 0); }
#else
extern int usleep(unsigned us);
static void sleep_while(int seen) { if (GET(run) == seen) usleep(100); }
static void wake_all(void) {}
#endif

#ifndef NAME_THREAD
#define NAME_THREAD()
#endif

// Once `lead` has returned, no helper touches the run, so its memory may be released. All these operations have one
// order, the same for every thread. A helper counts itself in `inside` before it checks that the run is still on; the
// leader ends the run before it checks that nobody is inside. So if a helper finds the run on, the leader sees it
// inside and waits, and no other leader overwrites `call` meanwhile. If it finds the run over, it touches nothing. A
// helper that arrives during a later run has counted itself for nothing, and tries again.
static void *serve(void *argument) {
    const int worker = (int)(long long)argument;
    int last = 0, waited = 0;
    NAME_THREAD();
    enter_float_mode();  // for good: a thread inherits its creator's mode
    for (;;) {
        const int run = GET(run);
        if (run % 2 && run != last) {
            ADD(inside, 1);
            if (GET(run) == run) WORK_ALONG(crew.call, worker);
            ADD(inside, -1);
            last = run;
            waited = 0;
        }
        if (++waited < PATIENCE) {
            rest(waited);
            continue;
        }
        ADD(asleep, 1);
        sleep_while(run);
        ADD(asleep, -1);
        waited = 0;
    }
    return 0;
}

// Returns 1 if the calling thread may lead; it must then call `lead`.
EXPORTED int take(void) {
    int nobody = 0;
    return GET(helpers) && !GET(taken) &&
           __atomic_compare_exchange_n(&crew.taken, &nobody, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// Runs a region with whatever helpers arrive.
EXPORTED void lead(ulong *call) {
    crew.call = call;
    call[NATIVE_CALL_NUMBER] = (ulong)GET(run) + 1;
    ADD(run, 1);
    if (GET(asleep)) wake_all();
    WORK_ALONG(call, 0);
    ADD(run, 1);
    for (int waited = 0; GET(inside); ++waited) rest(waited);
    SET(taken, 0);
}

// The address of the current run's number.
EXPORTED int *door(void) { return &crew.run; }

// Starts a thread that serves as a helper; returns whether that succeeded.
#if defined(_WIN32)
typedef unsigned(__stdcall *Start)(void *argument);
extern void *__stdcall CreateThread(void *security, ulong stack, Start start, void *argument, unsigned flags, unsigned *id);
extern int __stdcall CloseHandle(void *handle);
static unsigned __stdcall begin(void *argument) { serve(argument); return 0; }
static int start(void *argument) {
    void *thread = CreateThread((void *)0, 0, begin, argument, 0, (unsigned *)0);
    return thread && CloseHandle(thread);
}
#else
extern int pthread_create(void **thread, const void *attributes, void *(*start)(void *), void *argument);
extern int pthread_detach(void *thread);
static int start(void *argument) {
    void *thread;
    return !pthread_create(&thread, (void *)0, serve, argument) && !pthread_detach(thread);
}
#endif

// Starts helpers until there are `count`; returns their number.
EXPORTED int hire(int count) {
    while (crew.helpers < count && start((void *)(long long)(crew.helpers + 1))) ADD(helpers, 1);
    return crew.helpers;
}

// The processor's counter, as kernels read it (clock.h).
EXPORTED long long read_clock(void) {
#if defined(__x86_64__)
    return __builtin_readcyclecounter();
#else
    return __builtin_readsteadycounter();
#endif
}

// In the child of a fork no helper exists, and nobody leads.
EXPORTED void forget(void) {
    SET(taken, 0);
    SET(run, 0);
    SET(inside, 0);
    SET(asleep, 0);
    SET(helpers, 0);
}

// How workers of a region wait for each other (region.cl).
#include <delegate.plan.region_tables.RegionSize>

#define LINE (REGION_SIZE_LINE_BYTES / 4)  // ints in a cache line
#define PATIENCE 2000

#ifdef LITECL_NATIVE
#define PREFETCH_TO_WRITE(p) __builtin_prefetch((const void *)(size_t)(p), 1, 3)
#else
#define PREFETCH_TO_WRITE(p)
#endif

// A waiting worker yields to others, which may need its processor, if its compiler can express it.
static void pause_worker(const int waited) {
#if defined(LITECL_NATIVE)
    if (waited > PATIENCE) NATIVE_YIELD();
    else NATIVE_PAUSE();
#elif defined(LITECL_ASSEMBLY)  // x86-64's, on Linux
    // PoCL 6 treats an indirect call (here assembly) like get_local_size: its operands must be constants.
    if (waited > PATIENCE) {  // sched_yield
        __asm__ volatile("movl $24, %%eax\n\tsyscall" : : "i"(0), "i"(0), "i"(0) : "rax", "rcx", "r11", "memory");
    } else {
        __builtin_ia32_pause();
    }
#endif
}

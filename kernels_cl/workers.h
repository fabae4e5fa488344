// How workers wait, the door at which helpers meet a calling thread, and functions of other programs (region.cl).
#include <Door>
#include <RegionSize>

#define LINE (REGION_SIZE_LINE_BYTES / 4)  // ints in a cache line
#define DOOR(name) (door + DOOR_##name * LINE)
#define PATIENCE 2000

// A waiting worker yields to others, which may need its processor.
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

#define CALLABLE __attribute__((used, noinline)) static

#ifdef LITECL_ADDRESSES
// The address of a function of this program, and a call of one of another program: OpenCL C has no pointers to functions.
// The compiler knows of neither. So the function must be CALLABLE and be called in the ordinary way too, with arguments
// that are OPAQUE, lest it is left out, or made for fewer arguments. The call keeps off the 128 bytes behind the stack,
// which its caller may be using.
#define ADDRESS_OF(function, address) __asm__ volatile("leaq " #function "(%%rip), %0" : "=r"(address))
#define OPAQUE(value) __asm__ volatile("" : "+r"(value))

static void call_at(ulong address, ulong region, int worker) {
    __asm__ volatile(
        "movq %%rsp, %%rbx\n\tsubq $192, %%rsp\n\tandq $-64, %%rsp\n\tcall *%%rax\n\tmovq %%rbx, %%rsp"
        : "+a"(address), "+D"(region), "+S"(worker)
        :
        : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
          "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#else
#define OPAQUE(value)
#endif

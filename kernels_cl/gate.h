// A gate before Python's lock, for threads that run short regions without it and take it again behind each.
//
// Python has a thread that does not get its lock sleep, and to be woken takes longer than a short region: four threads
// would get less done than one. So a thread that is about to take the lock first waits, awake, until the one before it
// has released it again, which happens as that one begins its next region. It waits for no longer than a few
// microseconds, as the other may have something else to do. An int is the gate: the thread within, or 0.

#define GATE_PATIENCE 512  // pauses

static int this_thread(void) {
    ulong self;  // the address of what belongs to the thread alone
    __asm__ volatile("movq %%fs:0, %0" : "=r"(self));
    return (int)(self >> 4) | 1;
}

static void leave_gate(const ulong address) {
    __global volatile int *gate = (__global volatile int *)address;
    if (gate && *gate == this_thread()) *gate = 0;
}

static void enter_gate(const ulong address) {
    __global volatile int *gate = (__global volatile int *)address;
    if (!gate) return;
    const int self = this_thread();
    for (int waited = 0; waited < GATE_PATIENCE; ++waited) {
        if (!*gate && !atomic_cmpxchg(gate, 0, self)) return;
        __builtin_ia32_pause();
    }
    *gate = self;
}

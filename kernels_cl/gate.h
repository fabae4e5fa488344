// A gate before Python's lock, for threads that run short regions without it and take it again behind each.
//
// Python has a thread that does not get its lock sleep, and to be woken takes longer than a short region: several
// threads would get less done than one. So a thread that is about to take the lock first waits, awake, until the one
// before it has released it again, which happens as that one begins its next region. It waits for 10 to 30 us at most,
// as the other may have something else to do. An int is the gate: the thread within, or 0. Where threads cannot be told
// apart without a library there is none.
#define GATE_PATIENCE 512  // pauses

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#ifdef __x86_64__
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() __asm__ volatile("yield")
#endif

static int this_thread(void) { return (int)((__UINTPTR_TYPE__)__builtin_thread_pointer() >> 4) | 1; }

static void leave_gate(int *gate) {
    if (gate && __atomic_load_n(gate, __ATOMIC_RELAXED) == this_thread()) __atomic_store_n(gate, 0, __ATOMIC_RELAXED);
}

static void enter_gate(int *gate) {
    if (!gate) return;
    const int self = this_thread();
    for (int waited = 0; waited < GATE_PATIENCE; ++waited) {
        int nobody = 0;
        if (!__atomic_load_n(gate, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(gate, &nobody, self, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
        PAUSE();
    }
    __atomic_store_n(gate, self, __ATOMIC_RELAXED);
}
#else
static void leave_gate(int *gate) {}
static void enter_gate(int *gate) {}
#endif
